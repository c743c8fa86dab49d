// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/packings/packing_table.h"

#include <algorithm>
#include <array>

#include "formats/bytes/inflate.h"
#include "formats/bytes/packings/packings.h"

namespace npyfs {

std::span<const Packing> packings() {
  static const std::vector<Packing> rows = {
      {.name = "gzip", .extension = "gz", .recognises = is_gzip},
      kZstdPacking,
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
  std::array<std::byte, kPackingMagicNbytes> head{};
  const std::size_t n = std::min<std::uint64_t>(head.size(), source.nbytes());
  source.read_at(0, std::span(head).first(n));
  return find_packing(std::span<const std::byte>(head).first(n));
}

}  // namespace npyfs
