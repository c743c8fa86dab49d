// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

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

Error corrupt_at(std::string_view file, std::uint64_t offset, std::string_view text) {
  return {ErrorKind::kCorrupt, fmt::format("{} at byte {}: {}", printable(file), offset, text)};
}

Error file_error(ErrorKind kind, std::string_view file, std::string_view text) {
  return {kind, fmt::format("{}: {}", printable(file), text)};
}

Error system_error(std::string_view file, std::string_view verb, int system_errno) {
  const bool missing = system_errno == ENOENT || system_errno == ENOTDIR;
  char buffer[128];
  const char* reason = strerror_r(system_errno, buffer, sizeof buffer);
  return {missing ? ErrorKind::kNotFound : ErrorKind::kIo,
          fmt::format("{}: cannot {}: {}", printable(file), verb, reason), system_errno};
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
