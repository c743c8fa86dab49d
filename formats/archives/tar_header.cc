// SPDX-License-Identifier: Apache-2.0

#include "formats/archives/tar_header.h"

#include <algorithm>
#include <cstring>

namespace npyfs {

namespace {

constexpr std::size_t kSumAt = 148;
constexpr std::size_t kSumNbytes = 8;
constexpr std::size_t kMagicAt = 257;
constexpr std::size_t kPrefixAt = 345;

std::optional<std::int64_t> parse_octal(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\0')) {
    field.remove_prefix(1);
  }
  std::int64_t value = 0;
  for (const char c : field) {
    if (c == ' ' || c == '\0') {
      return value;
    }
    if (c < '0' || c > '7') {
      return std::nullopt;
    }
    value = value * 8 + (c - '0');  // 12 digits are 36 bits
  }
  return value;
}

// Two's complement, big-endian; the first bit only says that it is such a number.
std::optional<std::int64_t> parse_base256(std::string_view field) {
  const auto first = static_cast<unsigned char>(field.front());
  const bool negative = (first & 0x40) != 0;
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  const std::uint64_t rest = negative ? 0xff : 0;
  for (std::size_t i = 0; i < field.size(); ++i) {
    auto byte = static_cast<unsigned char>(field[i]);
    byte = i == 0 ? static_cast<unsigned char>(negative ? (byte | 0x80) : (byte & 0x7f)) : byte;
    if (i + 8 < field.size()) {
      if (byte != rest) {
        return std::nullopt;  // beyond 64 bits
      }
      continue;
    }
    value = (value << 8) | byte;
  }
  const auto as_signed = static_cast<std::int64_t>(value);
  return (as_signed < 0) == negative ? std::optional(as_signed) : std::nullopt;
}

}  // namespace

bool TarHeader::all_zero() const {
  std::uint64_t any = 0;
  for (std::size_t at = 0; at < kTarBlock && any == 0; at += sizeof any) {
    std::memcpy(&any, block_.data() + at, sizeof any);
  }
  return any == 0;
}

bool TarHeader::checksum_holds() const {
  const auto claimed =
      parse_octal({reinterpret_cast<const char*>(block_.data()) + kSumAt, kSumNbytes});
  if (!claimed) {
    return false;
  }
  const auto sum_of = [](std::span<const std::byte> bytes) {
    std::uint32_t sum = 0;
    for (const std::byte b : bytes) {
      sum += std::to_integer<std::uint32_t>(b);
    }
    return sum;
  };
  const std::uint32_t sum =
      sum_of(block_) - sum_of(block_.subspan(kSumAt, kSumNbytes)) + kSumNbytes * ' ';
  if (*claimed == std::int64_t{sum}) {
    return true;
  }
  std::int64_t as_signed = sum;
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    const bool counts = i < kSumAt || i >= kSumAt + kSumNbytes;
    as_signed -= counts && (block_[i] & std::byte{0x80}) != std::byte{0} ? 256 : 0;
  }
  return *claimed == as_signed;
}

TarHeader::Dialect TarHeader::dialect() const {
  const char* magic = reinterpret_cast<const char*>(block_.data()) + kMagicAt;
  if (std::memcmp(magic, "ustar\0", 6) == 0) {
    return Dialect::kUstar;
  }
  return std::memcmp(magic, "ustar  ", 7) == 0 ? Dialect::kGnu : Dialect::kV7;
}

std::string_view TarHeader::prefix() const {
  return dialect() == Dialect::kUstar ? text(kPrefixAt, 155) : std::string_view();
}

std::optional<std::int64_t> TarHeader::number(std::size_t at, std::size_t width) const {
  const std::string_view field(reinterpret_cast<const char*>(block_.data()) + at, width);
  return (static_cast<unsigned char>(field.front()) & 0x80) != 0 ? parse_base256(field)
                                                                 : parse_octal(field);
}

std::string_view TarHeader::text(std::size_t at, std::size_t width) const {
  const char* begin = reinterpret_cast<const char*>(block_.data()) + at;
  return {begin, strnlen(begin, width)};
}

bool is_tar_header(std::span<const std::byte> head) {
  if (head.size() < kTarBlock) {
    return false;
  }
  const TarHeader header(head.first<kTarBlock>());
  return !header.all_zero() && header.checksum_holds();
}

}  // namespace npyfs
