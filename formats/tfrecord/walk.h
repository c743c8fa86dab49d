// SPDX-License-Identifier: Apache-2.0
//
// TFRecord's framing: u64 length, u32 masked CRC-32C of those 8 bytes, data, u32 masked CRC-32C of
// the data; little-endian, one record after another. tensorflow:
// tensorflow/core/lib/io/record_reader.cc

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"

namespace npyfs {

constexpr std::uint64_t kHeaderNbytes = 12;  // before the data
constexpr std::uint64_t kFooterNbytes = 4;   // after it

// Whether 12 bytes or more begin with a length and its checksum.
bool is_record_header(std::span<const std::byte> head);

// Hops from record to record. One thread.
class RecordWalk {
 public:
  RecordWalk(const ByteSource& source, WindowReader& window) : source_(source), window_(window) {}

  struct Step {
    enum class Kind {
      kRecord,     // whole
      kCutRecord,  // the file ends within its data or the data's checksum
      kCutHeader,  // the file ends within its header
      kLost,       // no record begins here, so none after it can be found
      kEnd,
    };
    Kind kind = Kind::kEnd;
    std::uint64_t offset = 0;  // of the data
    std::uint64_t nbytes = 0;  // of the data
    std::optional<Error> error;
  };
  // The next record. Not to be asked again after anything but kRecord.
  Step next();

 private:
  Step cut_header(std::uint64_t left) const;
  Step bad_length(std::uint64_t nbytes, std::uint64_t left) const;

  const ByteSource& source_;
  WindowReader& window_;
  std::uint64_t offset_ = 0;
};

}  // namespace npyfs
