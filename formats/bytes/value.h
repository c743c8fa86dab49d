// SPDX-License-Identifier: Apache-2.0
//
// Attributes: plain data in the shape of JSON, with what Python adds to it, and its two printed
// forms: the pickle inside attrs.npy and attrs.json.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace npyfs {

struct Value;
using List = std::vector<Value>;
// Insertion order is kept, as Python's dict keeps it.
struct DictEntry;
using Dict = std::vector<DictEntry>;

// An integer beyond 64 bits, in decimal.
struct BigInt {
  std::string decimal;
  bool operator==(const BigInt&) const = default;
};
struct Bytes {
  std::string bytes;
  bool operator==(const Bytes&) const = default;
};

struct Complex {
  double real = 0;
  double imaginary = 0;
  bool operator==(const Complex&) const = default;
};

// monostate is None.
struct Value {
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, BigInt, double, std::string,
               Bytes, List, Dict, Complex>
      v;
};

struct DictEntry {
  std::string name;
  Value value;
};

// Adds or replaces `name`; a replaced entry keeps its place.
void set_value(Dict& dict, const std::string& name, Value value);

// JSON text to a value, as Python's json reads it: NaN, Infinity, floats that are infinite by their
// size, integers beyond 64 bits and halves of surrogate pairs (as three bytes) included; but an
// integer of more than 300 digits may become a text. Nesting up to 512; of equal keys the last wins
// in the place of the first. Throws kUsage with the byte offset of the fault, or near it where the
// text has such numbers or halves.
Value parse_json(std::string_view text);

// UTF-8 JSON, two blanks of indent, a final newline. NaN and infinities become null, bytes text,
// a complex number the list of its parts; what is not UTF-8 becomes U+FFFD.
std::string print_json(const Value& value);

// attrs.npy: `dict` pickled (protocol 3) in a 0-d object array, header included, so that
// np.load(..., allow_pickle=True)[()] gives the dict in every numpy.
std::string print_attrs_npy(const Dict& dict);

}  // namespace npyfs
