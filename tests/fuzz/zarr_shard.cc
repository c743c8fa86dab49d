// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a shard of 8 `<f4` in 2 inner chunks, its index at the end or the beginning.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/error.h"
#include "formats/zarr/shard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  for (const bool index_first : {false, true}) {
    for (const bool compressed : {false, true}) {
      ShardLayout layout;
      layout.shard_shape = {8};
      layout.inner_shape = {4};
      layout.grid_shape = {2};
      layout.inner_count = 2;
      layout.index_first = index_first;
      layout.stored_index_nbytes = layout.index_nbytes();
      layout.element_nbytes = 4;
      CodecChain inner;
      if (compressed) {
        inner.add(make_zstd());
      }
      const CodecPtr codec =
          make_shard_codec(std::move(layout), std::move(inner), std::vector<std::byte>(4));
      std::vector<std::byte> out(32);
      try {
        if (codec->decode(std::as_bytes(std::span(data, size)), out) != out.size()) {
          std::abort();
        }
      } catch (const Error&) {  // what is refused is refused by this alone
      }
    }
  }
  return 0;
}
