// SPDX-License-Identifier: Apache-2.0

#include "formats/npy/npy.h"

#include <algorithm>

#include "formats/bytes/error.h"
#include "formats/bytes/npy_header.h"
#include "formats/bytes/zip.h"
#include "formats/npy/npy_dir.h"
#include "formats/payloads/npz.h"
#include "formats/store.h"

namespace npyfs {

namespace {

constexpr std::size_t kHeadNbytes = 6;

std::vector<std::byte> read_head(const ByteSource& source) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source.nbytes(), kHeadNbytes));
  source.read_at(0, head);
  return head;
}

bool recognises(const Location& location) {
  if (location.is_directory) {
    return is_npy_dir(location.path, location.named);
  }
  return is_npy(read_head(*location.source)) || is_npz(*location.source);
}

StorePtr open_npy_file(const SourcePtr& source) {
  auto store = std::make_shared<Store>();
  StoredArray array;
  array.sources = {source};
  array.parts.emplace_back(read_stored_npy(source, 0, source->nbytes()));
  store->root.arrays.push_back(std::move(array));
  return store;
}

StorePtr open_store(const Location& location, OpenContext& context) {
  if (location.is_directory) {
    return open_npy_dir(location.path, context);
  }
  return is_zip(read_head(*location.source)) ? open_npz(location.source, context)
                                             : open_npy_file(location.source);
}

}  // namespace

const Format kNpy = {.name = "npy",
                     .extensions = {"npy", "npz"},
                     .recognises = recognises,
                     .open_store = open_store};

}  // namespace npyfs
