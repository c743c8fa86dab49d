// SPDX-License-Identifier: Apache-2.0
//
// The index of tar shards, grouped either way, strict and permissive: whatever the bytes are, what
// is found lies within them, and a good shard behind them is read as it is.

#include "formats/archives/tar_index.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "formats/archives/tar_table.h"
#include "formats/extents.h"
#include "tests/support/tar_writer.h"

namespace {

using npyfs::RecordTable;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

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

// A link and what it stands for, in a place where the input has something else.
std::string good_shard() {
  using npyfs::testing::tar_member;
  return tar_member({"pad", std::string(1 << 16, 'p')}) + tar_member({"good.wav", "W"}) +
         tar_member({"target", "T"}) + tar_member({"good.txt", "", '2', "target"}) +
         npyfs::testing::tar_end();
}

npyfs::SourcePtr shard_of(std::span<const std::byte> bytes) {
  return std::make_shared<npyfs::MemorySource>("fuzz.tar",
                                               std::vector<std::byte>(bytes.begin(), bytes.end()));
}

// As a list of shards does it with --permissive: twice the input, then a good one.
void index_before_good(std::span<const std::byte> bytes) {
  npyfs::OpenContext context;
  context.permissive = true;
  npyfs::TarIndexer indexer(npyfs::TarGrouping::kWenet, context);
  try {
    for (int i = 0; i < 2; ++i) {
      try {
        indexer.add_shard(shard_of(bytes));
      } catch (const npyfs::Error& error) {
        if (error.kind() != npyfs::ErrorKind::kCorrupt) {
          return;  // refused
        }
      }
    }
    const std::string good = good_shard();
    indexer.add_shard(shard_of(std::as_bytes(std::span(good))));
  } catch (const npyfs::Error&) {
    return;  // its extensions are too many by now
  }
  const auto table = npyfs::make_tar_table(indexer.finish());
  const std::uint64_t last = table->size() - 1;
  require(table->size() > 0 && table->text_key(last) == "good");
  int found = 0;
  for (const npyfs::StoredUnit& unit : table->stored()) {
    std::vector<npyfs::Extent> extents;
    std::byte byte{};
    if (unit.bytes->locate(last, extents)) {
      npyfs::read_stored(*unit.bytes, last, 0, {&byte, 1});
      require(unit.extension == "wav" ? byte == std::byte{'W'} : byte == std::byte{'T'});
      ++found;
    }
  }
  require(found == 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const auto grouping : {npyfs::TarGrouping::kWebDataset, npyfs::TarGrouping::kWenet}) {
    index_once(bytes, grouping, false);
    index_once(bytes, grouping, true);
  }
  index_before_good(bytes);
  return 0;
}
