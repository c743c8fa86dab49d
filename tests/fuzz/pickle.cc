// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a pickle: as a sample, as attributes, as the index of a packed folder.

#include "formats/payloads/pickle.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/payloads/pickle_item.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    MemoryBytes pickle(bytes, "fuzz");
    const PickleTree tree = parse_pickle(pickle);
    const PickleItem item = describe_pickle(tree, tree.root(), pickle);
    const auto elements = element_count(item.shape);
    if (item.source == PickleSource::kRebuilt && elements &&
        *elements * item.dtype.itemsize <= 1 << 24) {
      std::vector<std::byte> out(*elements * item.dtype.itemsize);
      build_item(tree, tree.root(), pickle, item.dtype, out);
    }
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  try {
    read_pickle(bytes, "fuzz", [](const std::string&) {});
  } catch (const Error&) {
  }
  try {
    read_attrs_npy(bytes, "fuzz", [](const std::string&) {});
  } catch (const Error&) {
  }
  return 0;
}
