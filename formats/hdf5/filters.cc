// SPDX-License-Identifier: Apache-2.0
//
// Numbers and parameters: HDFGroup/hdf5: src/H5Zpublic.h; HDFGroup/hdf5_plugins: docs; h5py:
// lzf/README.txt.

#include "formats/hdf5/filters.h"

#include <fmt/format.h>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// What the parameter with this number is; 0 where it was not given.
std::uint32_t parameter(const FilterDescription& filter, std::size_t i) {
  return i < filter.parameters.size() ? filter.parameters[i] : 0;
}

// The version (major, minor), the element size, the block size in elements, the compressor.
CodecPtr make_bitshuffle_of(const FilterDescription& filter) {
  // Before 0.4 there was no Zstandard, and what was asked for it was not compressed.
  const bool is_old = parameter(filter, 0) == 0 && parameter(filter, 1) < 4;
  const auto inner = static_cast<BitshuffleInner>(parameter(filter, 4));
  if (inner != BitshuffleInner::kNone && inner != BitshuffleInner::kLz4 &&
      inner != BitshuffleInner::kZstd) {
    return nullptr;
  }
  return make_bitshuffle(
      parameter(filter, 2), parameter(filter, 3),
      is_old && inner == BitshuffleInner::kZstd ? BitshuffleInner::kNone : inner);
}

// Null for a filter that is not known here.
CodecPtr make_filter(const FilterDescription& filter) {
  switch (filter.id) {
    case 1:
      return make_zlib();
    case 2:
      return make_shuffle(parameter(filter, 0));
    case 3:
      return make_fletcher32();
    case 4:
      return make_szip(
          {parameter(filter, 0), parameter(filter, 1), parameter(filter, 2), parameter(filter, 3)});
    case kFilterBzip2:
      return make_bz2();
    case kFilterLzf:
      return make_lzf();
    case kFilterBlosc:
      return make_blosc();
    case kFilterLz4:
      return make_hdf5_lz4();
    case kFilterBitshuffle:
      return make_bitshuffle_of(filter);
    case kFilterZstd:
      return make_zstd();
    default:
      return nullptr;
  }
}

}  // namespace

FilterChain make_filter_chain(const std::vector<FilterDescription>& filters) {
  FilterChain chain;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const FilterDescription& filter = filters[i];
    CodecPtr codec;
    try {
      codec = make_filter(filter);
    } catch (const Error&) {
      // Parameters that make no sense: as if it were not known.
    }
    if (codec == nullptr) {
      chain.unknown |= std::uint32_t{1} << i;
      chain.unknown_names +=
          fmt::format("{}{} ({})", chain.unknown_names.empty() ? "" : ", ", filter.id, filter.name);
      codec = make_identity(fmt::format("filter {}", filter.id));
    }
    chain.text += (chain.text.empty() ? "" : ", ") + codec->name();
    chain.codecs.add(std::move(codec));
  }
  return chain;
}

}  // namespace npyfs
