// SPDX-License-Identifier: Apache-2.0

#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "cli/sizes.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

constexpr std::chrono::milliseconds kTerminalInterval{200};
constexpr std::chrono::seconds kPlainInterval{30};

// "2:05", "1:02:05".
std::string duration_text(double seconds) {
  const auto all = static_cast<std::uint64_t>(seconds + 0.5);
  const std::uint64_t hours = all / 3600;
  const std::string rest = fmt::format("{}:{:02}", all / 60 % 60, all % 60);
  return hours == 0 ? rest : fmt::format("{}:{:0>5}", hours, rest);
}

}  // namespace

void print_all(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw system_error("standard output", "write", errno);
  }
}

std::string table_text(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{}{:<{}}", i == 0 ? "" : "  ", row[i], widths[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

Progress::Progress(std::string_view verb, bool is_shown)
    : verb_(verb), is_shown_(is_shown), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::show(std::uint64_t nbytes, std::uint64_t of_nbytes, std::uint64_t found_nbytes) {
  const Clock::time_point now = Clock::now();
  const Clock::duration since = now - shown_;
  if (!is_shown_ || (is_terminal_ ? since < kTerminalInterval : since < kPlainInterval)) {
    return;
  }
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double rate = static_cast<double>(nbytes - found_nbytes) / std::max(seconds, 1e-3);
  std::string line = fmt::format(
      "{} {} of {} ({:.0f} %), {}/s", verb_, short_size(nbytes), short_size(of_nbytes),
      of_nbytes == 0 ? 100 : 100 * static_cast<double>(nbytes) / static_cast<double>(of_nbytes),
      short_size(static_cast<std::uint64_t>(rate)));
  if (rate > 0) {
    line += fmt::format(", {} left", duration_text(static_cast<double>(of_nbytes - nbytes) / rate));
  }
  if (is_terminal_) {
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    std::fflush(stderr);
    has_line_ = true;
  } else {
    std::fprintf(stderr, "npyfs: %s\n", line.c_str());
  }
}

void Progress::clear() {
  if (has_line_) {
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    has_line_ = false;
  }
}

}  // namespace npyfs
