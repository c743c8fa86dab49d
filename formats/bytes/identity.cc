// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/identity.h"

#include <fmt/format.h>

#include <charconv>

namespace npyfs {

namespace {

constexpr std::string_view kFile = "file";
constexpr std::string_view kNone = "none";

// Takes ":<number>" from the front of `text`; false where it is none.
template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  if (!text.starts_with(':')) {
    return false;
  }
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data() + 1, end, number);
  text.remove_prefix(static_cast<std::size_t>(behind - text.data()));
  return error == std::errc();
}

}  // namespace

std::string Identity::text() const {
  return exists() ? fmt::format("{}:{}:{}:{}:{}", kFile, device, inode, nbytes, mtime_ns)
                  : std::string(kNone);
}

std::optional<Identity> Identity::parse(std::string_view text) {
  Identity identity;
  if (text == kNone) {
    return identity;
  }
  if (!text.starts_with(kFile)) {
    return std::nullopt;
  }
  text.remove_prefix(kFile.size());
  const bool is_read = take_number(text, identity.device) && take_number(text, identity.inode) &&
                       take_number(text, identity.nbytes) && take_number(text, identity.mtime_ns);
  return is_read && text.empty() && identity.exists() ? std::optional(identity) : std::nullopt;
}

}  // namespace npyfs
