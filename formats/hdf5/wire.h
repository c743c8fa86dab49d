// SPDX-License-Identifier: Apache-2.0
//
// What npyfs and the child that runs libhdf5 say to each other: frames over a socket. The child is
// not to be trusted, a crafted file may have taken it over: whatever a frame says is checked.
//
//   |u32 nbytes|u8 kind|fields ...    nbytes counts what follows it; all numbers little-endian
//
//   text:  |u32 nbytes|bytes      shape: |u8 rank|u64 ...      value: |u8 tag|...

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/dtype.h"
#include "formats/bytes/error.h"
#include "formats/bytes/value.h"

namespace npyfs {

enum class FrameKind : std::uint8_t {
  // To the child.
  kDescribe = 1,  // text path: the object there, and all below it
  kRead = 2,      // text path, u8 form, u32 characters, shape start, shape count, of the bytes
                  // that are found u64 how many to skip, u64 how many to send
  kChunks = 3,    // text path: where its chunks lie
  // From the child.
  kGroupBegin = 16,    // text name, value attributes
  kGroupEnd = 17,      //
  kArray = 18,         // formats/hdf5/description.cc
  kExternalLink = 19,  // text name, text file, text path in it
  kWarning = 20,       // text
  kData = 21,          // bytes
  kEnd = 22,           // the answer is complete
  kFailure = 23,       // text: it cannot be given
  kProgress = 24,      // still at work
};

inline constexpr std::size_t kFrameHeadNbytes = 5;
// Of data, in one frame.
inline constexpr std::size_t kDataPieceNbytes = std::size_t{1} << 20;

// What an honest child tells of the attributes of one question: so many values, so many bytes of
// text. As plain data a value takes 40 bytes and more, for a number of one byte, too.
inline constexpr std::uint64_t kMostAttributeValues = std::uint64_t{1} << 22;
inline constexpr std::uint64_t kMostAttributeNbytes = std::uint64_t{32} << 20;

// What a read makes of the elements.
enum class ReadForm : std::uint8_t {
  kPlain = 0,   // as they are, without padding of bits
  kText = 1,    // strings of any length, `characters` code points each, as numpy's <U
  kConcat = 2,  // sequences of any length one after another
};

// How an array is stored: the alternatives of ArrayDescription::storage. What follows the tag,
// after the fields that all arrays have, is read in description.cc.
enum class StorageTag : std::uint8_t {
  kAbsent,
  kContiguous,
  kCompact,
  kChunked,
  kRead,
  kExternal,
  kVirtual,
};

// In the place of a selection's rank: all there is.
inline constexpr std::uint8_t kWholeSelection = 0xff;

class WireFrameWriter {
 public:
  explicit WireFrameWriter(FrameKind kind) : bytes_(kFrameHeadNbytes) {
    bytes_[kFrameHeadNbytes - 1] = static_cast<std::byte>(kind);
  }

  WireFrameWriter& add_u8(std::uint8_t number);
  WireFrameWriter& add_u32(std::uint32_t number);
  WireFrameWriter& add_u64(std::uint64_t number);
  WireFrameWriter& add_bytes(std::span<const std::byte> bytes);
  WireFrameWriter& add_text(std::string_view text);
  WireFrameWriter& add_shape(const Shape& shape);
  WireFrameWriter& add_value(const Value& value);

  // The frame; valid until this changes.
  std::span<const std::byte> finish();

 private:
  std::vector<std::byte> bytes_;
};

struct WireFrame {
  FrameKind kind = FrameKind::kEnd;
  std::vector<std::byte> bytes;  // the fields
};

// Reads the fields of one frame, in order. All members throw kCorrupt where the frame does not hold
// what is asked for; `name`, which outlives this, is the file's.
class WireFrameReader {
 public:
  WireFrameReader(std::span<const std::byte> bytes, const std::string& name)
      : left_(bytes), name_(name) {}

  std::uint8_t take_u8();
  std::uint32_t take_u32();
  std::uint64_t take_u64();
  std::string take_text();
  // Of at most 32 dimensions, as numpy has it.
  Shape take_shape();
  Value take_value();
  // How many things of at least `least_nbytes` each follow: never more than there is room for.
  std::uint32_t take_count(std::size_t least_nbytes);
  // How many values, those within lists and dictionaries included, have been taken.
  std::uint64_t values_taken() const { return values_taken_; }
  // Throws unless all has been taken.
  void require_end() const;
  std::size_t left() const { return left_.size(); }

  Error wrong(std::string_view text) const;

 private:
  std::span<const std::byte> take(std::size_t nbytes);
  Value take_value(int depth);

  std::span<const std::byte> left_;
  const std::string& name_;
  std::uint64_t values_taken_ = 0;
};

}  // namespace npyfs
