// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "formats/bytes/index_page.h"
#include "formats/bytes/utf8.h"

namespace npyfs {

int Error::to_errno() const {
  switch (kind_) {
    case ErrorKind::kUsage:
      return EINVAL;
    case ErrorKind::kNotFound:
      return ENOENT;
    case ErrorKind::kChanged:
      return ESTALE;
    case ErrorKind::kTooLarge:
      return EFBIG;
    case ErrorKind::kIo:
      return system_errno_ != 0 ? system_errno_ : EIO;
    case ErrorKind::kCorrupt:
    case ErrorKind::kUnsupported:
      return EIO;
  }
  return EIO;
}

std::string_view Error::said() const {
  std::string_view text = what();
  text.remove_prefix(said_begin_);
  text.remove_suffix(behind_said_nbytes_);
  return text;
}

Error Error::wrapped(std::string_view before, std::string_view after) const {
  Error error(kind_, fmt::format("{}{}{}", before, what(), after), system_errno_);
  error.said_begin_ = said_begin_ + before.size();
  error.behind_said_nbytes_ = behind_said_nbytes_ + after.size();
  return error;
}

void Error::write(PageWriter& page) const {
  page.number(static_cast<std::uint64_t>(kind_));
  page.number(static_cast<std::uint64_t>(system_errno_));
  page.number(said_begin_);
  page.number(behind_said_nbytes_);
  page.text(what());
}

Error Error::read(PageReader& page) {
  const auto kind = static_cast<ErrorKind>(page.number(static_cast<int>(ErrorKind::kTooLarge)));
  const auto system_errno = static_cast<int>(page.number(4095));
  const std::uint64_t said_begin = page.number();
  const std::uint64_t behind_said_nbytes = page.number();
  const std::string text = page.text();
  PageReader::require(said_begin <= text.size() && behind_said_nbytes <= text.size() - said_begin);
  Error error(kind, text, system_errno);
  error.said_begin_ = said_begin;
  error.behind_said_nbytes_ = behind_said_nbytes;
  return error;
}

Error error_at(ErrorKind kind, const std::string& place, std::string_view text, int system_errno) {
  Error error(kind, fmt::format("{}: {}", place, text), system_errno);
  error.said_begin_ = place.size() + 2;
  return error;
}

Error corrupt_at(std::string_view file, std::uint64_t offset, std::string_view text) {
  return error_at(ErrorKind::kCorrupt, fmt::format("{} at byte {}", printable(file), offset), text);
}

Error file_error(ErrorKind kind, std::string_view file, std::string_view text) {
  return error_at(kind, printable(file), text);
}

Error system_error(std::string_view file, std::string_view verb, int system_errno) {
  const bool missing = system_errno == ENOENT || system_errno == ENOTDIR;
  char buffer[128];
  const char* reason = strerror_r(system_errno, buffer, sizeof buffer);
  const char* remedy = system_errno == EMFILE ? "; raise the limit (ulimit -n, LimitNOFILE=)" : "";
  return error_at(missing ? ErrorKind::kNotFound : ErrorKind::kIo, printable(file),
                  fmt::format("cannot {}: {}{}", verb, reason, remedy), system_errno);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const auto point = next_code_point(text, at);
    const auto byte = static_cast<unsigned char>(text[begin]);
    // ESC is one byte, but its C1 sisters (CSI is U+009B) are obeyed by terminals, too.
    const bool control = point && (*point < 0x20 || (*point >= 0x7f && *point < 0xa0));
    if (!point || is_surrogate(*point) || control) {
      at = begin + 1;
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out;
}

}  // namespace npyfs
