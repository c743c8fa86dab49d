// SPDX-License-Identifier: Apache-2.0
//
// The lines of a text file, one after another, through one buffer.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// One thread.
class LineReader {
 public:
  // A line longer than `limit_nbytes` is handed out in parts of more than that.
  LineReader(const ByteSource& source, std::size_t limit_nbytes)
      : source_(source), limit_nbytes_(limit_nbytes) {}

  // The next line without its end ("\n" or "\r\n"); false at the end of the file. `line` is valid
  // until the next call. Throws as ByteSource::read_at.
  bool next(std::string_view& line);
  std::uint64_t offset() const { return offset_; }  // of the line last returned
  std::uint32_t number() const { return number_; }  // from 1

 private:
  const char* find_line_end() const;
  void refill();

  const ByteSource& source_;
  std::size_t limit_nbytes_;
  std::string buffer_;
  std::size_t begin_ = 0;   // of what is not handed out yet
  std::uint64_t read_ = 0;  // bytes of the file that are or were in the buffer
  std::uint64_t offset_ = 0;
  std::uint32_t number_ = 0;
};

}  // namespace npyfs
