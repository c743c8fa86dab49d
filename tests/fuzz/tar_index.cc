// SPDX-License-Identifier: Apache-2.0
//
// The index of tar shards, grouped either way, strict and permissive: whatever the bytes are, what
// is found lies within them.

#include "formats/archives/tar_index.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/archives/tar_table.h"
#include "formats/extents.h"

namespace {

using npyfs::RecordTable;

void read_ends(const RecordTable& table) {
  for (const npyfs::Field& field : table.fields()) {
    for (std::uint64_t record = 0; record < table.size(); ++record) {
      const std::uint64_t nbytes = npyfs::stored_nbytes(*field.bytes, record);
      std::byte byte{};
      for (const std::uint64_t offset : {std::uint64_t{0}, nbytes / 2, nbytes - 1}) {
        if (nbytes > 0) {
          npyfs::read_stored(*field.bytes, record, offset, {&byte, 1});
        }
      }
    }
  }
}

void index_once(std::span<const std::byte> bytes, npyfs::TarGrouping grouping, bool permissive) {
  npyfs::OpenContext context;
  context.permissive = permissive;
  std::shared_ptr<const RecordTable> table;
  try {
    npyfs::TarIndexer indexer(grouping, context);
    indexer.add_shard(std::make_shared<npyfs::MemorySource>(
        "fuzz.tar", std::vector<std::byte>(bytes.begin(), bytes.end())));
    table = npyfs::make_tar_table(indexer.finish());
  } catch (const npyfs::Error&) {
    return;  // refused
  }
  // No Error may come out of here: what an index says is there, is there.
  read_ends(*table);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const auto grouping : {npyfs::TarGrouping::kWebDataset, npyfs::TarGrouping::kWenet}) {
    index_once(bytes, grouping, false);
    index_once(bytes, grouping, true);
  }
  return 0;
}
