// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/base64.h"

#include <cstdint>

namespace npyfs {

namespace {

std::optional<std::uint32_t> value_of(char c) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t at = kAlphabet.find(c);
  return at == std::string_view::npos ? std::nullopt
                                      : std::optional(static_cast<std::uint32_t>(at));
}

}  // namespace

std::optional<std::size_t> decode_base64(std::string_view text, std::span<std::byte> out) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::size_t made = 0;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const std::size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto value = i < digits ? value_of(text[at + i]) : 0;
      if (!value) {
        return std::nullopt;
      }
      bits = bits << 6 | *value;
    }
    for (std::size_t i = 0; i + 1 < digits; ++i) {
      out[made++] = static_cast<std::byte>(bits >> (16 - 8 * i));
    }
  }
  return made;
}

}  // namespace npyfs
