// SPDX-License-Identifier: Apache-2.0
//
// A file of pages (formats/bytes/index_page.h), each found by its key. README.md says how it looks.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/index_page.h"
#include "kept/disk_file.h"

namespace npyfs {

using PageName = std::array<std::byte, 16>;
inline constexpr PageName kNoPageName{};

// Of a page on this machine: the first half of the SHA-256 of the program's version and the key's
// text.
PageName page_name(const std::string& version, const PageKey& key);
// Of a page that may be used on other machines: of what counts, the source's path relative to
// `folder`, its size and mtime. kNoPageName for a page of many sources.
PageName portable_page_name(const std::string& version, const PageKey& key,
                            const std::string& folder);

// Where a page lies in its file, as the manifest has it.
struct PageEntry {
  PageName name{};
  PageName portable_name{};
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
  std::uint32_t crc = 0;  // CRC-32C
  std::uint32_t zero = 0;
};
static_assert(sizeof(PageEntry) == 56);

// An index file, open for reading; what is read from it holds it. One thread.
class IndexFile : public std::enable_shared_from_this<IndexFile> {
 public:
  enum class Trust {
    // Nobody else can write to it, and it is as npyfs left it: pages are mapped and believed.
    kOurs,
    // The same, but nobody knows how it was left: pages are mapped and held against their CRC.
    kUnstamped,
    // Anybody may write to it: pages are copied, and held against their CRC.
    kForeign,
  };

  // Null where the file is no such index, or damaged. Throws kIo.
  static std::shared_ptr<const IndexFile> open(DiskFile file, Trust trust);
  ~IndexFile();
  IndexFile(const IndexFile&) = delete;
  IndexFile& operator=(const IndexFile&) = delete;

  // Null where it has no such page.
  const PageEntry* find(const PageName& name) const;
  const PageEntry* find_portable(const PageName& name) const;
  // Nothing where the page is damaged. Throws kIo.
  std::optional<PageReader> read(const PageEntry& entry) const;
  // The page's bytes, unchecked; in `copy` where the file is not mapped, none if it was cut. Throws
  // kIo.
  std::span<const std::byte> bytes(const PageEntry& entry, std::vector<std::uint64_t>& copy) const;
  std::size_t size() const { return entries_.size(); }

 private:
  IndexFile(DiskFile file, Trust trust) : file_(std::move(file)), trust_(trust) {}
  bool read_manifest();

  DiskFile file_;  // of a foreign one; what is mapped needs no descriptor
  Trust trust_;
  std::uint64_t nbytes_ = 0;
  const std::byte* mapped_ = nullptr;
  std::span<const PageEntry> entries_;  // by name; in the map, or in:
  std::vector<PageEntry> copied_entries_;
  mutable std::vector<std::uint32_t> by_portable_name_;
};

// Writes an index file, page by page. One thread.
class IndexFileWriter {
 public:
  // `make` makes the file, empty and open for writing, once there is more than a little to write.
  // What it throws, the calls below throw.
  explicit IndexFileWriter(std::function<DiskFile()> make);

  // The page that `write` writes. Throws kIo, after which nothing may be called.
  void add(const PageName& name, const PageName& portable_name,
           const std::function<void(PageWriter&)>& write);
  void add_bytes(const PageName& name, const PageName& portable_name,
                 std::span<const std::byte> bytes);
  // Takes back the page that was added last, if it is the one of this name.
  void forget_last(const PageName& name);
  // Writes what it has so far, and makes the file if there is none yet. Throws kIo.
  void flush();
  // Writes the manifest and syncs. Throws kIo.
  const DiskFile& finish();
  std::uint64_t nbytes() const { return nbytes_; }
  std::size_t size() const { return entries_.size(); }

 private:
  void put(std::span<const std::byte> bytes);

  std::function<DiskFile()> make_;
  DiskFile file_;
  std::vector<std::byte> buffer_;
  std::uint64_t nbytes_ = 0;  // written, or in the buffer
  std::vector<PageEntry> entries_;
};

}  // namespace npyfs
