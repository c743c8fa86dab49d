// SPDX-License-Identifier: Apache-2.0

#include "formats/tfrecord/wire.h"

#include <fmt/format.h>

#include <algorithm>

namespace npyfs {

namespace {

constexpr std::uint64_t kMaxVarintNbytes = 10;
// protobuf gives up at the same depth (its default recursion limit).
constexpr int kMaxGroupDepth = 100;
// Field numbers are 1 to 2^29 - 1.
constexpr std::uint64_t kMaxTag = 0xffffffff;
constexpr std::uint64_t kScanNbytes = std::uint64_t{64} << 10;

}  // namespace

void WireReader::fail(std::uint64_t offset, std::string_view text) const {
  throw WireFault(corrupt_at(bytes_.name(), offset, text));
}

std::uint64_t WireReader::varint() {
  const std::uint64_t begin = range_.begin;
  const auto bytes = bytes_.at(begin, std::min(kMaxVarintNbytes, range_.nbytes()));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      range_.begin += i + 1;
      return value;
    }
  }
  fail(begin, bytes.size() == kMaxVarintNbytes
                  ? "a varint is longer than 10 bytes, expected at most 10"
                  : "a varint is cut by the end of its message, expected it whole");
}

Tag WireReader::tag() {
  const std::uint64_t begin = range_.begin;
  const std::uint64_t value = varint();
  const std::uint64_t type = value & 7;
  if (value > kMaxTag || value >> 3 == 0 || type > 5) {
    fail(begin, fmt::format("a tag is {:#x}, expected a field number from 1 to 2^29-1 and a wire "
                            "type from 0 to 5",
                            value));
  }
  return {static_cast<std::uint32_t>(value >> 3), static_cast<WireType>(type)};
}

ByteRange WireReader::fixed(std::uint64_t nbytes) {
  if (nbytes > range_.nbytes()) {
    fail(range_.begin, fmt::format("a value of {} bytes begins where {} are left, expected it "
                                   "within its message",
                                   nbytes, range_.nbytes()));
  }
  const ByteRange value{range_.begin, range_.begin + nbytes};
  range_.begin = value.end;
  return value;
}

ByteRange WireReader::length_delimited() { return fixed(varint()); }

void WireReader::skip_value(Tag tag, int depth) {
  switch (tag.type) {
    case WireType::kVarint:
      varint();
      break;
    case WireType::kFixed64:
      fixed(8);
      break;
    case WireType::kBytes:
      length_delimited();
      break;
    case WireType::kFixed32:
      fixed(4);
      break;
    case WireType::kGroupBegin:
      skip_group(tag.field, depth + 1);
      break;
    case WireType::kGroupEnd:
      fail(range_.begin, "a group ends that has not begun, expected a field");
  }
}

void WireReader::skip_group(std::uint32_t field, int depth) {
  if (depth > kMaxGroupDepth) {
    fail(range_.begin,
         fmt::format("groups are nested deeper than {0}, expected at most {0}", kMaxGroupDepth));
  }
  for (;;) {
    if (done()) {
      fail(range_.begin, "a group has no end, expected one within its message");
    }
    const Tag inner = tag();
    if (inner.is(field, WireType::kGroupEnd)) {
      return;
    }
    skip_value(inner, depth);
  }
}

std::uint64_t count_varints(const WireBytes& bytes, ByteRange range) {
  std::uint64_t count = 0;
  std::uint64_t continued = 0;  // bytes since the last varint's end
  std::uint64_t offset = range.begin;
  while (offset < range.end) {
    const auto piece = bytes.at(offset, std::min(kScanNbytes, range.end - offset));
    for (const std::byte byte : piece) {
      continued = (byte & std::byte{0x80}) == std::byte{0} ? 0 : continued + 1;
      count += continued == 0 ? 1 : 0;
      if (continued >= kMaxVarintNbytes) {
        throw WireFault(corrupt_at(
            bytes.name(), offset, "a packed integer is longer than 10 bytes, expected at most 10"));
      }
    }
    offset += piece.size();
  }
  if (continued != 0) {
    throw WireFault(
        corrupt_at(bytes.name(), range.end, "the last packed integer is cut, expected it whole"));
  }
  return count;
}

}  // namespace npyfs
