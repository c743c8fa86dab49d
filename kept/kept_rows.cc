// SPDX-License-Identifier: Apache-2.0

#include "kept/kept_rows.h"

#include <fcntl.h>

#include <algorithm>

#include "formats/bytes/error.h"
#include "kept/eviction.h"

namespace npyfs {

namespace {

const char kNoMap[] = "its map is missing, damaged or of another version";

// What the map says; nothing where it cannot be read.
void read_map(const DiskFolder& disk, KeptRow& row) {
  row.fault = kNoMap;
  row.kept_blocks = row.kept_nbytes = 0;
  try {
    const auto map = BlockMap::read(disk.open(map_name(row.name), O_RDONLY));
    if (!map || map->key().name() != row.name) {
      return;
    }
    row.label = map->key().label;
    row.key = map->key().text;
    row.nbytes = map->array_nbytes();
    row.blocks = map->block_count();
    const std::vector<bool> there = map->blocks();
    for (std::uint64_t block = 0; block < there.size(); ++block) {
      row.kept_blocks += there[block] ? 1 : 0;
      row.kept_nbytes += there[block] ? map->block_nbytes(block) : 0;
    }
    row.is_open = map->file().is_locked_by_others(DiskFile::Lock::kUser);
    row.fault.clear();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kIo) {
      throw;
    }
  }
}

KeptRow row_of(const DiskFolder& disk, const KeptFiles& files) {
  KeptRow row;
  row.name = files.name;
  row.disk_nbytes = files.disk_nbytes();
  row.is_complete = files.complete.has_value();
  row.used_at_ns = files.used_at_ns();
  read_map(disk, row);
  return row;
}

void remove(KeptFolder& folder, KeptRow& row) {
  if (!folder.is_read_only() && folder.drop(row.name)) {
    row.is_complete = false;
    row.kept_blocks = row.kept_nbytes = 0;
  }
}

void check(KeptFolder& folder, KeptRow& row) {
  if (!row.fault.empty()) {
    remove(folder, row);
    return;
  }
  const KeptKey key{row.key, row.label, sha256(row.key)};
  const auto array = folder.find(key, row.nbytes);
  if (!array) {
    // A process that died when it had made the map has lost nothing.
    row.fault =
        row.kept_blocks > 0 ? "its data is missing, or not as long as the map says" : std::string();
    remove(folder, row);
    return;
  }
  const bool is_good = array->check();
  read_map(folder.disk(), row);
  row.is_complete = array->is_complete();
  row.is_open = false;  // but here
  row.fault = is_good ? "" : "bytes differ from their CRC";
}

}  // namespace

std::vector<KeptRow> list_kept(const KeptFolder& folder) {
  std::vector<KeptRow> rows;
  for (const KeptFiles& files : find_kept_files(folder.disk())) {
    rows.push_back(row_of(folder.disk(), files));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const KeptRow& a, const KeptRow& b) { return a.used_at_ns > b.used_at_ns; });
  return rows;
}

std::vector<KeptRow> drop_kept(KeptFolder& folder, const KeptChoice& is_meant) {
  std::vector<KeptRow> rows;
  for (KeptRow& row : list_kept(folder)) {
    if (!is_meant(row)) {
      continue;
    }
    row.fault = folder.drop(row.name) ? "" : "it is being written to; try again";
    rows.push_back(std::move(row));
  }
  return rows;
}

void check_kept(KeptFolder& folder, std::vector<KeptRow>& rows,
                const std::function<void(std::uint64_t nbytes)>& progress) {
  for (KeptRow& row : rows) {
    const std::uint64_t nbytes = row.kept_nbytes;
    check(folder, row);
    progress(nbytes);
  }
}

}  // namespace npyfs
