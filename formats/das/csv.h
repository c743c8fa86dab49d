// SPDX-License-Identifier: Apache-2.0
//
// Comma-separated values (RFC 4180), row by row.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

// One thread.
class CsvReader {
 public:
  // `text` outlives the reader; `name` is what messages call the file.
  CsvReader(std::string_view text, std::string name);

  // The fields of the next row, quotes taken off; false at the end. Blank lines are passed over.
  // Throws kCorrupt, with the line, for a quote that does not end or that text follows.
  bool next(std::vector<std::string>& fields);
  // Of the row last returned: where it begins, from 1.
  std::uint64_t line() const { return row_line_; }

 private:
  std::string read_quoted();
  [[noreturn]] void fail(std::uint64_t line, const std::string& text) const;

  std::string_view text_;
  std::string name_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t row_line_ = 0;
};

}  // namespace npyfs
