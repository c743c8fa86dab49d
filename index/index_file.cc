// SPDX-License-Identifier: Apache-2.0

#include "index/index_file.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "formats/bytes/crc.h"
#include "formats/bytes/error.h"
#include "kept/kept_key.h"

namespace npyfs {

namespace {

constexpr std::size_t kBufferNbytes = std::size_t{1} << 20;
constexpr std::array<char, 8> kMagic = {'N', 'P', 'Y', 'F', 'I', 'N', 'D', 'X'};
constexpr std::uint32_t kVersion = 1;

// The end of the file.
struct Tail {
  std::uint64_t manifest_offset = 0;
  std::uint64_t count = 0;
  std::uint32_t manifest_crc = 0;
  std::uint32_t version = kVersion;
  std::array<char, 8> magic = kMagic;
  std::uint32_t zero = 0;
  std::uint32_t crc = 0;  // of what is before it
};
static_assert(sizeof(Tail) == 40);

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::uint32_t crc_of(const Tail& tail) { return crc32c(bytes_of(tail).first(offsetof(Tail, crc))); }

PageName name_of(std::string_view text) {
  const Digest digest = sha256(text);
  PageName name;
  std::copy_n(digest.begin(), name.size(), name.begin());
  return name;
}

bool before(const PageEntry& entry, const PageName& name) { return entry.name < name; }

}  // namespace

PageName page_name(const std::string& version, const PageKey& key) {
  return name_of(version + "\n" + key.text());
}

PageName portable_page_name(const std::string& version, const PageKey& key,
                            const std::string& folder) {
  if (key.sources().empty()) {
    return kNoPageName;
  }
  std::string text = version + "\n" + key.things();
  for (const PageKey::Source& source : key.sources()) {
    const std::string path = std::filesystem::path(source.path).lexically_relative(folder).string();
    text += fmt::format("\n{}:{} {} {}", path.size(), path, source.nbytes, source.mtime_ns);
  }
  return name_of(text);
}

std::shared_ptr<const IndexFile> IndexFile::open(DiskFile file, Trust trust) {
  const std::shared_ptr<IndexFile> index(new IndexFile(std::move(file), trust));
  return index->read_manifest() ? index : nullptr;
}

IndexFile::~IndexFile() {
  if (mapped_ != nullptr) {
    ::munmap(const_cast<std::byte*>(mapped_), nbytes_);
  }
}

bool IndexFile::read_manifest() {
  nbytes_ = static_cast<std::uint64_t>(file_.look().st_size);
  Tail tail;
  if (nbytes_ < sizeof tail ||
      !file_.read(nbytes_ - sizeof tail, std::as_writable_bytes(std::span(&tail, 1)))) {
    return false;
  }
  const std::uint64_t end = nbytes_ - sizeof tail;
  if (tail.crc != crc_of(tail) || tail.magic != kMagic || tail.version != kVersion ||
      tail.manifest_offset > end || tail.manifest_offset % alignof(PageEntry) != 0 ||
      tail.count != (end - tail.manifest_offset) / sizeof(PageEntry)) {
    return false;
  }
  if (trust_ == Trust::kForeign) {
    copied_entries_.resize(tail.count);
    if (!file_.read(tail.manifest_offset, std::as_writable_bytes(std::span(copied_entries_)))) {
      return false;
    }
    entries_ = copied_entries_;
  } else {
    void* const map = ::mmap(nullptr, nbytes_, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
    if (map == MAP_FAILED) {
      throw system_error(file_.name(), "map", errno);
    }
    mapped_ = static_cast<const std::byte*>(map);
    file_ = DiskFile();
    entries_ = {reinterpret_cast<const PageEntry*>(mapped_ + tail.manifest_offset), tail.count};
  }
  return crc32c(std::as_bytes(entries_)) == tail.manifest_crc &&
         std::all_of(entries_.begin(), entries_.end(), [&](const PageEntry& entry) {
           return entry.offset % sizeof(std::uint64_t) == 0 &&
                  entry.nbytes % sizeof(std::uint64_t) == 0 &&
                  entry.offset <= tail.manifest_offset &&
                  entry.nbytes <= tail.manifest_offset - entry.offset;
         });
}

const PageEntry* IndexFile::find(const PageName& name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

const PageEntry* IndexFile::find_portable(const PageName& name) const {
  if (name == kNoPageName) {
    return nullptr;
  }
  if (by_portable_name_.empty()) {
    by_portable_name_.resize(entries_.size());
    std::iota(by_portable_name_.begin(), by_portable_name_.end(), 0U);
    std::sort(by_portable_name_.begin(), by_portable_name_.end(),
              [&](std::uint32_t a, std::uint32_t b) {
                return entries_[a].portable_name < entries_[b].portable_name;
              });
  }
  const auto at = std::lower_bound(by_portable_name_.begin(), by_portable_name_.end(), name,
                                   [&](std::uint32_t entry, const PageName& wanted) {
                                     return entries_[entry].portable_name < wanted;
                                   });
  return at != by_portable_name_.end() && entries_[*at].portable_name == name ? &entries_[*at]
                                                                              : nullptr;
}

std::span<const std::byte> IndexFile::bytes(const PageEntry& entry,
                                            std::vector<std::uint64_t>& copy) const {
  if (mapped_ != nullptr) {
    return {mapped_ + entry.offset, entry.nbytes};
  }
  copy.resize((entry.nbytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  const auto bytes = std::as_writable_bytes(std::span(copy)).first(entry.nbytes);
  return file_.read(entry.offset, bytes) ? bytes : bytes.first(0);
}

std::optional<PageReader> IndexFile::read(const PageEntry& entry) const {
  const auto copy = std::make_shared<std::vector<std::uint64_t>>();
  const std::span<const std::byte> page = bytes(entry, *copy);
  if (trust_ != Trust::kOurs && crc32c(page) != entry.crc) {
    return std::nullopt;
  }
  return PageReader(page, mapped_ != nullptr
                              ? std::shared_ptr<const void>(shared_from_this(), mapped_)
                              : std::shared_ptr<const void>(copy));
}

IndexFileWriter::IndexFileWriter(std::function<DiskFile()> make) : make_(std::move(make)) {}

void IndexFileWriter::flush() {
  if (!file_.is_open()) {
    file_ = make_();
  }
  file_.write(nbytes_ - buffer_.size(), buffer_);
  buffer_.clear();
}

void IndexFileWriter::put(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() >= kBufferNbytes) {
    flush();
  }
  if (bytes.size() >= kBufferNbytes) {
    file_.write(nbytes_, bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  nbytes_ += bytes.size();
}

void IndexFileWriter::add(const PageName& name, const PageName& portable_name,
                          const std::function<void(PageWriter&)>& write) {
  PageEntry entry{.name = name, .portable_name = portable_name, .offset = nbytes_};
  PageWriter page([&](std::span<const std::byte> bytes) {
    entry.crc = crc32c(bytes, entry.crc);
    put(bytes);
  });
  write(page);
  entry.nbytes = nbytes_ - entry.offset;
  entries_.push_back(entry);
}

void IndexFileWriter::add_bytes(const PageName& name, const PageName& portable_name,
                                std::span<const std::byte> bytes) {
  entries_.push_back({.name = name,
                      .portable_name = portable_name,
                      .offset = nbytes_,
                      .nbytes = bytes.size(),
                      .crc = crc32c(bytes)});
  put(bytes);
}

void IndexFileWriter::forget_last(const PageName& name) {
  if (!entries_.empty() && entries_.back().name == name) {
    entries_.pop_back();
  }
}

const DiskFile& IndexFileWriter::finish() {
  // Of two pages of one key the first counts: sources may be named twice.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const PageEntry& a, const PageEntry& b) { return a.name < b.name; });
  const std::span<const PageEntry> entries(entries_);
  Tail tail;
  tail.manifest_offset = nbytes_;
  tail.count = entries.size();
  tail.manifest_crc = crc32c(std::as_bytes(entries));
  tail.crc = crc_of(tail);
  put(std::as_bytes(entries));
  put(bytes_of(tail));
  flush();
  file_.sync_data();
  return file_;
}

}  // namespace npyfs
