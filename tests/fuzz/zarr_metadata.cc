// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as .zarray and as zarr.json: understood, its codecs put together.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/value_access.h"
#include "formats/zarr/metadata.h"

namespace {

using namespace npyfs;  // NOLINT

void build(const ArrayMetadata& metadata) {
  if (metadata.shape.size() != metadata.chunk_shape.size()) {
    std::abort();
  }
  if (metadata.type.objects != ElementObjects::kNone) {
    return;
  }
  const DType& dtype = metadata.type.dtype;
  if (dtype.itemsize == 0 || metadata.fill.size() != dtype.itemsize) {
    std::abort();
  }
  metadata.build({dtype.itemsize, number_nbytes(dtype), nullptr, metadata.fill});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (ArrayMetadata (*const read)(const Dict&) : {read_metadata_v2, read_metadata_v3}) {
    try {
      const Value value = parse_json({reinterpret_cast<const char*>(data), size});
      if (const Dict* dict = as_dict(&value)) {
        build(read(*dict));
      }
    } catch (const Error&) {  // what is refused is refused by this alone
    }
  }
  return 0;
}
