// SPDX-License-Identifier: Apache-2.0
//
// The sidecar of a kept array, NAME.map: what the array is, which of its blocks are on the disk,
// and the CRC-32C of each. README.md draws its layout.

#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kept/disk_file.h"
#include "kept/kept_key.h"

namespace npyfs {

// Written in pieces of this size, aligned to it, a file gets page-cache folios as large as the
// kernel's, which makes a memmap of it up to 9 times faster than one written in pieces of 4 KiB.
constexpr std::uint64_t kKeptBlockNbytes = std::uint64_t{2} << 20;

// What a complete file looked like when it was known to be good.
struct FileStamp {
  std::uint64_t nbytes = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;  // changes with whatever is done to the file, its name too

  bool operator==(const FileStamp&) const = default;
};

FileStamp stamp_of(const struct stat& status);

// One map. The members read and write the file each time; they throw kIo, and kCorrupt where the
// file has become too short. Any thread, any process: an entry is written by one write of 8 bytes,
// and holds a seal, so that it is there as a whole or not at all.
class BlockMap {
 public:
  // What a map of an array without blocks is, from its first byte up to its entries.
  static std::vector<std::byte> head(const KeptKey& key, std::uint64_t array_nbytes);
  static std::uint64_t nbytes(const KeptKey& key, std::uint64_t array_nbytes);
  // Nothing where the file is no map, or damaged outside of its entries. Throws kIo.
  static std::optional<BlockMap> read(DiskFile file);

  const DiskFile& file() const { return file_; }
  const KeptKey& key() const { return key_; }
  std::uint64_t array_nbytes() const { return array_nbytes_; }
  std::uint64_t block_count() const { return block_count_; }
  // The last one is shorter.
  std::uint64_t block_nbytes(std::uint64_t block) const;

  // Changes when blocks go: before a block's bytes are given back to the disk, and after its entry
  // is gone. Bytes that were read before a call that returns the same as one before them are those
  // of the entry.
  std::uint64_t generation() const;
  void set_generation(std::uint64_t generation) const;

  // The CRC-32C of a block; nothing where it is not there.
  std::optional<std::uint32_t> crc_of(std::uint64_t block) const;
  std::vector<std::optional<std::uint32_t>> crcs(std::uint64_t first, std::uint64_t count) const;
  // Which are there, all of them.
  std::vector<bool> blocks() const;
  // Nothing where all are there from `from` on.
  std::optional<std::uint64_t> first_absent(std::uint64_t from) const;
  void set(std::uint64_t block, std::uint32_t crc) const;
  void clear(std::uint64_t block) const;

  // Nothing where the array is not complete.
  std::optional<FileStamp> stamp() const;
  void set_stamp(const FileStamp& stamp) const;

 private:
  BlockMap(DiskFile file, KeptKey key, std::uint64_t array_nbytes);
  std::uint32_t seal_of(std::uint64_t block, std::uint32_t crc) const;
  void read_all_of(std::uint64_t offset, std::span<std::byte> out) const;

  DiskFile file_;
  KeptKey key_;
  std::uint32_t digest_crc_;
  std::uint64_t array_nbytes_;
  std::uint64_t block_count_;
  std::uint64_t entries_offset_;
};

std::uint64_t kept_block_count(std::uint64_t array_nbytes);

}  // namespace npyfs
