// SPDX-License-Identifier: Apache-2.0
//
// Compressed streams of every packing: refused, or all of the bytes that they say they have.

#include "formats/bytes/unpack.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/bytes/error.h"
#include "tests/support/one_chunk_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto base = std::make_shared<npyfs::MemorySource>(
      "fuzz", std::vector<std::byte>(bytes.begin(), bytes.end()));
  npyfs::unpack_head(*base, 512);
  if (npyfs::find_packing(*base) == nullptr) {
    return 0;
  }
  npyfs::testing::OneChunkCache cache;
  npyfs::SourcePtr source;
  try {
    source = npyfs::open_unpacked(base, cache, {});
  } catch (const npyfs::Error&) {
    return 0;  // refused
  }
  std::byte byte{};
  for (std::uint64_t offset = 0; offset < source->nbytes();
       offset += std::max<std::uint64_t>(1, source->nbytes() / 8)) {
    source->read_at(offset, {&byte, 1});
  }
  return 0;
}
