// SPDX-License-Identifier: Apache-2.0
//
// What commands print: results to stdout, how far they have come to stderr.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

// Writes to stdout. Throws kIo.
void print_all(std::string_view text);

// Rows in columns as wide as need be, each line indented by `indent`. All rows have as many cells.
std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

// How far a command has come, on stderr: on a terminal one line that is written over, elsewhere a
// plain line every 30 s. One thread.
class Progress {
 public:
  // `verb`: "filled". Shows nothing if not `is_shown`.
  Progress(std::string_view verb, bool is_shown);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `found_nbytes` of the `nbytes` cost no time: they were done before.
  void show(std::uint64_t nbytes, std::uint64_t of_nbytes, std::uint64_t found_nbytes = 0);
  // Takes the line away, so that another one can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string verb_;
  bool is_shown_;
  bool is_terminal_;
  bool has_line_ = false;
  Clock::time_point began_ = Clock::now();
  Clock::time_point shown_ = began_;
};

}  // namespace npyfs
