// SPDX-License-Identifier: Apache-2.0
//
// A cache folder for one test, and arrays whose bytes everybody knows.

#pragma once

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "kept/kept_folder.h"

namespace npyfs::testing {

using Bytes = std::vector<std::byte>;

// What stands at `offset` of array `number`, as far as `out` goes.
inline void fill_reference(std::uint64_t number, std::uint64_t offset, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t at = offset + i;
    std::uint64_t word = (number + 1) * 0x9e3779b97f4a7c15 + at / 8 * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 31)) * 0x94d049bb133111eb;
    word ^= word >> 29;
    const std::size_t n = std::min<std::size_t>(8 - at % 8, out.size() - i);
    std::memcpy(out.data() + i, reinterpret_cast<const std::byte*>(&word) + at % 8, n);
    i += n;
  }
}

inline Bytes reference(std::uint64_t number, std::uint64_t offset, std::uint64_t nbytes) {
  Bytes bytes(nbytes);
  fill_reference(number, offset, bytes);
  return bytes;
}

inline KeptKey key_of(std::uint64_t number) {
  const Identity source{1, number + 1, 100, 5};
  return *KeyWriter()
              .add("format", "test")
              .add("array", "train/x.npy")
              .add_sources(std::span(&source, 1))
              .finish("train/x.npy of test " + std::to_string(number));
}

// Writes these blocks of array `number`.
inline KeptArray::Outcome write(KeptArray& array, std::uint64_t number,
                                const std::vector<std::uint64_t>& blocks) {
  std::vector<Bytes> bytes;
  std::vector<KeptArray::BlockBytes> parts;
  for (const std::uint64_t block : blocks) {
    bytes.push_back(reference(number, block * kKeptBlockNbytes, array.block_nbytes(block)));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    parts.push_back({blocks[i], bytes[i]});
  }
  return array.write_blocks(parts);
}

inline std::vector<std::uint64_t> all_blocks(const KeptArray& array) {
  std::vector<std::uint64_t> blocks(array.block_count());
  for (std::uint64_t block = 0; block < blocks.size(); ++block) {
    blocks[block] = block;
  }
  return blocks;
}

// The first block that is not there, or not good; as many as there are blocks if there is none.
inline std::uint64_t first_missing(KeptArray& array) {
  std::uint64_t block = 0;
  while (block < array.block_count() && array.holds(block)) {
    ++block;
  }
  return block;
}

// What a read answers: hit, miss, or "wrong bytes".
inline std::string read(const KeptArray& array, std::uint64_t number, std::uint64_t offset,
                        std::uint64_t nbytes) {
  Bytes bytes(nbytes);
  if (!array.read(offset, bytes)) {
    return "miss";
  }
  return bytes == reference(number, offset, nbytes) ? "hit" : "wrong bytes";
}

inline std::string read_block(const KeptArray& array, std::uint64_t number, std::uint64_t block) {
  return read(array, number, block * kKeptBlockNbytes, array.block_nbytes(block));
}

class CacheFolder {
 public:
  // Below `place`; empty: where temporary files are.
  explicit CacheFolder(const std::string& place = {}) {
    std::string pattern =
        (place.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(place)) /
        "npyfs-kept-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path map(std::uint64_t number) const {
    return path_ / map_name(key_of(number).name());
  }
  std::filesystem::path part(std::uint64_t number) const {
    return path_ / part_name(key_of(number).name());
  }
  std::filesystem::path complete(std::uint64_t number) const {
    return path_ / complete_name(key_of(number).name());
  }

  // As a process opens it; lines that it tells are in told().
  std::shared_ptr<KeptFolder> open(KeptOptions options = {}) {
    options.pause_after_failure = std::chrono::milliseconds(0);
    options.tell = [this](const std::string& text) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_.push_back(text);
    };
    return KeptFolder::open(path_, options);
  }
  std::vector<std::string> told() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }

 private:
  std::filesystem::path path_;
  std::mutex mutex_;
  std::vector<std::string> told_;
};

// Changes one bit of a file.
inline void flip_bit(const std::filesystem::path& path, std::uint64_t offset) {
  std::filesystem::permissions(path, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 4));
}

inline Bytes content_of(const std::filesystem::path& path) {
  Bytes bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace npyfs::testing
