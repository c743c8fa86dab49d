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

struct FilterChain {
  CodecChain codecs;
  // Bit k: the k-th filter is not known here; what stands in its place must not be asked.
  std::uint32_t unknown = 0;
  std::string unknown_names;  // "60123 (lzf)", for messages
  std::string text;           // "shuffle, deflate"; empty for none
};

FilterChain make_filter_chain(const std::vector<FilterDescription>& filters);

}  // namespace npyfs
