// SPDX-License-Identifier: Apache-2.0
//
// The filters of a data set as codecs, by the numbers under which the HDF Group registers them.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/bytes/codecs/codec_chain.h"
#include "formats/hdf5/description.h"

namespace npyfs {

inline constexpr std::uint32_t kFilterBzip2 = 307;
inline constexpr std::uint32_t kFilterLzf = 32000;
inline constexpr std::uint32_t kFilterBlosc = 32001;
inline constexpr std::uint32_t kFilterLz4 = 32004;
inline constexpr std::uint32_t kFilterBitshuffle = 32008;
inline constexpr std::uint32_t kFilterZstd = 32015;

struct FilterChain {
  CodecChain codecs;
  // Bit k: the k-th filter is not known here; what stands in its place must not be asked.
  std::uint32_t unknown = 0;
  std::string unknown_names;  // "60123 (lzf)", for messages
  std::string text;           // "shuffle, deflate"; empty for none
};

FilterChain make_filter_chain(const std::vector<FilterDescription>& filters);

}  // namespace npyfs
