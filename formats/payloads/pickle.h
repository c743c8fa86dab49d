// SPDX-License-Identifier: Apache-2.0
//
// Pickles read without executing anything: a stack machine that only builds data. Whatever needs
// code (a global that is not numpy's reconstruction of an array, an object of some class) becomes
// an unknown value, and what was to be called is not.
// [CPython Lib/pickletools.py; numpy/core/multiarray.py, numpy/core/src/multiarray/methods.c
// array_setstate]

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/dtype.h"
#include "formats/bytes/value.h"
#include "formats/payloads/payload_bytes.h"

namespace npyfs {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,     // number
  kInteger,  // number, two's complement
  kLong,     // beyond int64: text(), in decimal
  kFloat,    // number, the bits
  kText,     // bytes_of(), UTF-8
  kBytes,    // bytes_of()
  kEncoded,  // bytes written as text, one character each: items[0] is the text
  kList,     // items
  kTuple,    // items
  kSet,      // items
  kDict,     // items: key, value, key, value
  kComplex,  // items: two kFloat
  kArray,    // array()
  kScalar,   // array(), of shape ()
  kUnknown,  // would need code; or text(): an array of no plain type, where `nbytes` > 0
  // What arrays are built from; no values.
  kGlobal,  // number: which
  kDType,   // number: an index
  kShell,   // an array without its state
};

using PickleRef = std::uint32_t;

// Objects share parts, and a list may hold itself: whoever walks it bounds depth and steps.
class PickleTree {
 public:
  struct Node {
    PickleKind kind = PickleKind::kNone;
    // Of text and bytes: its `nbytes` lie in the pickle as they are, from `number` on; else it is
    // text().
    bool stored = false;
    std::uint64_t number = 0;
    std::uint64_t nbytes = 0;
  };
  struct Array {
    DType dtype;  // kind 'O' for Python objects, in `data` then a list
    Shape shape;
    bool fortran_order = false;
    PickleRef data = 0;
  };

  const Node& operator[](PickleRef ref) const { return nodes_[ref]; }
  PickleRef root() const { return root_; }
  // Behind the STOP.
  std::uint64_t end() const { return end_; }
  std::uint64_t size() const { return nodes_.size(); }
  // Of a list, tuple, set, dict or kEncoded.
  const std::vector<PickleRef>& items(PickleRef ref) const { return lists_[nodes_[ref].number]; }
  const Array& array(PickleRef ref) const { return arrays_[nodes_[ref].number]; }
  // Bytes or text that are not stored as they are, kLong.
  const std::string& text(PickleRef ref) const { return texts_[nodes_[ref].number]; }
  // The bytes of text, bytes or kEncoded, wherever they are.
  std::string bytes_of(PickleRef ref, PayloadBytes& pickle) const;
  // What would need code, if anything does: "posix.system", the first that was met.
  const std::optional<std::string>& unknown() const { return unknown_; }

 private:
  friend class PickleReader;

  std::vector<Node> nodes_;
  std::vector<std::vector<PickleRef>> lists_;
  std::vector<Array> arrays_;
  std::vector<std::string> texts_;
  PickleRef root_ = 0;
  std::uint64_t end_ = 0;
  std::optional<std::string> unknown_;
};

// Parses the pickle at `offset`, of protocol 0 to 5. Long strings and the data of arrays are not
// read, only stepped over. Takes time and memory by the number of opcodes. Throws kCorrupt where it
// is damaged, kUnsupported where it is beyond a limit.
PickleTree parse_pickle(PayloadBytes& pickle, std::uint64_t offset = 0);

// A pickle as plain data: arrays as nested lists, numpy's scalars as numbers, tuples and sets as
// lists, an object array of shape () as what it holds. What cannot be that (unknown values, keys
// that are no text, lists nested or repeated without measure) is dropped from the dict or list it
// is in, and `dropped` is called with its place ("a.b[2]") and what it is. Throws kCorrupt for
// what is no whole pickle, kUnsupported where nothing is left.
Value read_pickle(std::span<const std::byte> pickle, const std::string& name,
                  const std::function<void(const std::string&)>& dropped);

// The contents of an attrs.npy: the pickle behind the header of an object array. As read_pickle().
Value read_attrs_npy(std::span<const std::byte> file, const std::string& name,
                     const std::function<void(const std::string&)>& dropped);

}  // namespace npyfs
