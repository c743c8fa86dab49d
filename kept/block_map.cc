// SPDX-License-Identifier: Apache-2.0

#include "kept/block_map.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/bytes/regular_file.h"

namespace npyfs {

namespace {

constexpr std::string_view kMagic = "NPYFKEPT";
constexpr std::uint32_t kVersion = 1;

struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t block_nbytes;
  std::uint64_t array_nbytes;
  std::uint32_t key_nbytes;    // of the text behind the first page
  std::uint32_t label_nbytes;  // of the text behind that
  Digest digest;               // of the key
  std::uint32_t unused;
  std::uint32_t crc;  // CRC-32C of all before, key and label
};
static_assert(sizeof(Head) == 72);

struct StoredStamp {
  FileStamp stamp;
  std::uint32_t crc;  // of `stamp` and the digest
  std::uint32_t is_set;
};
static_assert(sizeof(StoredStamp) == 40);

struct Entry {
  std::uint32_t crc;
  std::uint32_t seal;
};
static_assert(sizeof(Entry) == 8);

constexpr std::uint64_t kGenerationOffset = 128;
constexpr std::uint64_t kStampOffset = 192;
constexpr std::uint64_t kPageNbytes = 4096;
constexpr std::uint64_t kTextOffset = kPageNbytes;
constexpr std::uint64_t kMostTextNbytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostArrayNbytes = std::uint64_t{1} << 62;
// Entries that are read at once.
constexpr std::uint64_t kEntriesAtOnce = 8192;

std::uint64_t entries_offset(std::uint64_t text_nbytes) {
  return kTextOffset + (text_nbytes + kPageNbytes - 1) / kPageNbytes * kPageNbytes;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::uint32_t crc_of_head(const Head& head, std::string_view texts) {
  return crc32c(std::as_bytes(std::span(texts)), crc32c(bytes_of(head).first(sizeof(Head) - 4)));
}

std::uint32_t crc_of_stamp(const FileStamp& stamp, const Digest& digest) {
  return crc32c(bytes_of(stamp), crc32c(digest));
}

}  // namespace

FileStamp stamp_of(const struct stat& status) {
  return {static_cast<std::uint64_t>(status.st_size), status.st_ino, to_ns(status.st_mtim),
          to_ns(status.st_ctim)};
}

std::uint64_t kept_block_count(std::uint64_t array_nbytes) {
  return (array_nbytes + kKeptBlockNbytes - 1) / kKeptBlockNbytes;
}

std::vector<std::byte> BlockMap::head(const KeptKey& key, std::uint64_t array_nbytes) {
  // A label is for people: what is too long for the map is cut.
  const std::string_view label = std::string_view(key.label).substr(0, kPageNbytes);
  const std::string texts = key.text + std::string(label);
  if (texts.size() > kMostTextNbytes || array_nbytes > kMostArrayNbytes) {
    throw Error(ErrorKind::kTooLarge, "too much to say of a kept array");
  }
  Head head{};
  std::memcpy(head.magic, kMagic.data(), sizeof head.magic);
  head.version = kVersion;
  head.block_nbytes = kKeptBlockNbytes;
  head.array_nbytes = array_nbytes;
  head.key_nbytes = static_cast<std::uint32_t>(key.text.size());
  head.label_nbytes = static_cast<std::uint32_t>(label.size());
  head.digest = key.digest;
  head.crc = crc_of_head(head, texts);
  std::vector<std::byte> bytes(entries_offset(texts.size()));
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + kTextOffset, texts.data(), texts.size());
  return bytes;
}

std::uint64_t BlockMap::nbytes(const KeptKey& key, std::uint64_t array_nbytes) {
  return head(key, array_nbytes).size() + kept_block_count(array_nbytes) * sizeof(Entry);
}

std::optional<BlockMap> BlockMap::read(DiskFile file) {
  Head head{};
  if (!file.read(0, std::as_writable_bytes(std::span(&head, 1))) ||
      std::string_view(head.magic, sizeof head.magic) != kMagic || head.version != kVersion ||
      head.block_nbytes != kKeptBlockNbytes || head.array_nbytes > kMostArrayNbytes ||
      std::uint64_t{head.key_nbytes} + head.label_nbytes > kMostTextNbytes) {
    return std::nullopt;
  }
  std::string texts(head.key_nbytes + head.label_nbytes, '\0');
  if (!file.read(kTextOffset, std::as_writable_bytes(std::span(texts))) ||
      head.crc != crc_of_head(head, texts)) {
    return std::nullopt;
  }
  KeptKey key{texts.substr(0, head.key_nbytes), texts.substr(head.key_nbytes), head.digest};
  const std::uint64_t nbytes =
      entries_offset(texts.size()) + kept_block_count(head.array_nbytes) * sizeof(Entry);
  if (static_cast<std::uint64_t>(file.look().st_size) != nbytes) {
    return std::nullopt;
  }
  return BlockMap(std::move(file), std::move(key), head.array_nbytes);
}

BlockMap::BlockMap(DiskFile file, KeptKey key, std::uint64_t array_nbytes)
    : file_(std::move(file)),
      key_(std::move(key)),
      digest_crc_(crc32c(key_.digest)),
      array_nbytes_(array_nbytes),
      block_count_(kept_block_count(array_nbytes)),
      entries_offset_(entries_offset(key_.text.size() + key_.label.size())) {}

std::uint64_t BlockMap::block_nbytes(std::uint64_t block) const {
  return std::min(kKeptBlockNbytes, array_nbytes_ - block * kKeptBlockNbytes);
}

void BlockMap::read_all_of(std::uint64_t offset, std::span<std::byte> out) const {
  if (!file_.read(offset, out)) {
    throw corrupt_at(file_.name(), offset, "the file ends there, expected more; it was shortened");
  }
}

std::uint64_t BlockMap::generation() const {
  std::uint64_t generation = 0;
  read_all_of(kGenerationOffset, std::as_writable_bytes(std::span(&generation, 1)));
  return generation;
}

void BlockMap::set_generation(std::uint64_t generation) const {
  file_.write(kGenerationOffset, bytes_of(generation));
}

// An entry that lies elsewhere, or is another array's, has another seal.
std::uint32_t BlockMap::seal_of(std::uint64_t block, std::uint32_t crc) const {
  return crc32c(bytes_of(crc), crc32c(bytes_of(block), digest_crc_));
}

std::optional<std::uint32_t> BlockMap::crc_of(std::uint64_t block) const {
  return crcs(block, 1).front();
}

std::vector<std::optional<std::uint32_t>> BlockMap::crcs(std::uint64_t first,
                                                         std::uint64_t count) const {
  std::vector<Entry> entries(count);
  read_all_of(entries_offset_ + first * sizeof(Entry), std::as_writable_bytes(std::span(entries)));
  std::vector<std::optional<std::uint32_t>> crcs(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Entry& entry = entries[i];
    const bool is_empty = entry.crc == 0 && entry.seal == 0;
    if (!is_empty && entry.seal == seal_of(first + i, entry.crc)) {
      crcs[i] = entry.crc;
    }
  }
  return crcs;
}

std::vector<bool> BlockMap::blocks() const {
  std::vector<bool> blocks;
  blocks.reserve(block_count_);
  while (blocks.size() < block_count_) {
    const std::uint64_t count = std::min(kEntriesAtOnce, block_count_ - blocks.size());
    for (const std::optional<std::uint32_t>& crc : crcs(blocks.size(), count)) {
      blocks.push_back(crc.has_value());
    }
  }
  return blocks;
}

std::optional<std::uint64_t> BlockMap::first_absent(std::uint64_t from) const {
  for (std::uint64_t first = from; first < block_count_; first += kEntriesAtOnce) {
    const auto found = crcs(first, std::min(kEntriesAtOnce, block_count_ - first));
    const auto absent = std::find(found.begin(), found.end(), std::nullopt);
    if (absent != found.end()) {
      return first + static_cast<std::uint64_t>(absent - found.begin());
    }
  }
  return std::nullopt;
}

void BlockMap::set(std::uint64_t block, std::uint32_t crc) const {
  const Entry entry{crc, seal_of(block, crc)};
  file_.write(entries_offset_ + block * sizeof(Entry), bytes_of(entry));
}

void BlockMap::clear(std::uint64_t block) const {
  file_.write(entries_offset_ + block * sizeof(Entry), bytes_of(Entry{}));
}

std::optional<FileStamp> BlockMap::stamp() const {
  StoredStamp stored{};
  read_all_of(kStampOffset, std::as_writable_bytes(std::span(&stored, 1)));
  if (stored.is_set != 1 || stored.crc != crc_of_stamp(stored.stamp, key_.digest)) {
    return std::nullopt;
  }
  return stored.stamp;
}

void BlockMap::set_stamp(const FileStamp& stamp) const {
  const StoredStamp stored{stamp, crc_of_stamp(stamp, key_.digest), 1};
  file_.write(kStampOffset, bytes_of(stored));
}

}  // namespace npyfs
