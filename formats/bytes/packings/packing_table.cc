// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/packings/packing_table.h"

#include <algorithm>
#include <array>

#include "formats/bytes/endian.h"
#include "formats/bytes/inflate.h"
#include "formats/bytes/packings/packings.h"

namespace npyfs {

std::span<const Packing> packings() {
  static const std::vector<Packing> rows = {
      {.name = "gzip", .extension = "gz", .recognises = is_gzip},
      kZstdPacking,
      kLz4Packing,
      kXzPacking,
      kBzip2Packing};
  return rows;
}

const Packing* find_packing(std::span<const std::byte> head) {
  const std::span<const Packing> all = packings();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Packing& packing) { return packing.recognises(head); });
  return found != all.end() ? &*found : nullptr;
}

const Packing* find_packing(const ByteSource& source) {
  constexpr int kMostSkipped = 16;
  constexpr std::size_t kSizeOffset = 4;
  std::array<std::byte, 8> bytes{};
  static_assert(kPackingMagicNbytes <= 8);
  const auto head_at = [&](std::uint64_t at) {
    const std::size_t n = std::min<std::uint64_t>(bytes.size(), source.nbytes() - at);
    source.read_at(at, std::span(bytes).first(n));
    return std::span<const std::byte>(bytes).first(n);
  };
  std::span<const std::byte> head = head_at(0);
  const Packing* const first = find_packing(head);
  const std::array<std::byte, 8> begin = bytes;
  std::uint64_t at = 0;
  for (int i = 0; i < kMostSkipped && head.size() == bytes.size() && is_skippable_frame(head);
       ++i) {
    at += head.size() + load_le<std::uint32_t>(head.data() + kSizeOffset);
    head = head_at(std::min(at, source.nbytes()));
  }
  const Packing* const found = find_packing(head);
  return at > 0 && found != nullptr && found->recognises(begin) ? found : first;
}

bool is_skippable_frame(std::span<const std::byte> head) {
  constexpr std::uint32_t kMagic = 0x184D2A50;  // to 5F
  return head.size() >= 4 && (load_le<std::uint32_t>(head.data()) & 0xfffffff0) == kMagic;
}

}  // namespace npyfs
