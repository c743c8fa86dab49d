// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/child_filters.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>

#include "formats/hdf5/child_handle.h"
#include "formats/hdf5/filters.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kMostNbytes = std::uint64_t{1} << 30;

// What libhdf5 calls with a chunk in `*buffer`, which was allocated with malloc and is to be
// replaced; 0 where that fails.
template <H5Z_filter_t kId>
std::size_t decode(unsigned flags, std::size_t count, const unsigned* parameters,
                   std::size_t nbytes, std::size_t* capacity, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) {
    return 0;
  }
  try {
    FilterDescription filter;
    filter.id = kId;
    filter.parameters.assign(parameters, parameters + count);
    const FilterChain chain = make_filter_chain({filter});
    if (chain.unknown != 0) {
      return 0;
    }
    const Buffer decoded =
        chain.codecs.decode_any({static_cast<const std::byte*>(*buffer), nbytes}, kMostNbytes);
    const auto bytes = decoded.bytes();
    void* const replaced = std::malloc(bytes.size() + 1);
    if (replaced == nullptr) {
      return 0;
    }
    std::memcpy(replaced, bytes.data(), bytes.size());
    std::free(*buffer);
    *buffer = replaced;
    *capacity = bytes.size();
    return bytes.size();
  } catch (const std::exception&) {
    return 0;
  }
}

template <H5Z_filter_t kId>
void register_filter() {
  if (H5Zfilter_avail(kId) > 0) {
    return;
  }
  H5Z_class2_t filter{};
  filter.version = H5Z_CLASS_T_VERS;
  filter.id = kId;
  filter.decoder_present = 1;
  filter.name = "npyfs";
  filter.filter = decode<kId>;
  H5Zregister(&filter);
}

}  // namespace

void register_filters() {
  register_filter<kFilterBzip2>();
  register_filter<kFilterLzf>();
  register_filter<kFilterBlosc>();
  register_filter<kFilterLz4>();
  register_filter<kFilterBitshuffle>();
  register_filter<kFilterZstd>();
}

}  // namespace npyfs
