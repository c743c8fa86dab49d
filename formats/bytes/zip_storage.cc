// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/zip_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"

namespace npyfs {

namespace {

// Deflated members, decoded for those who read parts of them.
class InflatedMembers : public ChunkSource {
 public:
  explicit InflatedMembers(const ZipMembers& members) : members_(members) {}

  std::uint64_t chunk_nbytes(std::uint64_t member) const override {
    return members_.directory()[member].nbytes;
  }
  void decode(std::uint64_t member, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    read_zip_member(*members_.archive(), members_.directory()[member], out);
  }

 private:
  const ZipMembers& members_;
};

// The archive and where its members are found: one for all places in it.
class ZipArchive {
 public:
  ZipArchive(std::shared_ptr<const ZipMembers> members, ChunkCache& cache)
      : members_(std::move(members)), inflated_(*members_), cache_(cache) {
    const ZipDirectory& directory = members_->directory();
    for (std::uint64_t i = 0; i < directory.size(); ++i) {
      if (is_key(directory[i].name) && !directory.replaced(i)) {
        by_name_.push_back(static_cast<std::uint32_t>(i));
      }
    }
    std::sort(by_name_.begin(), by_name_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return directory[a].name < directory[b].name;
    });
  }

  const SourcePtr& source() const { return members_->archive(); }
  const ZipMembers& members() const { return *members_; }
  ZipMember member(std::uint64_t number) const { return members_->directory()[number]; }
  const InflatedMembers& inflated() const { return inflated_; }
  ChunkCache& cache() const { return cache_; }

  std::optional<std::uint64_t> find(std::string_view name) const {
    const std::size_t at = first_from(name);
    return at < by_name_.size() && name_at(at) == name ? std::optional<std::uint64_t>(by_name_[at])
                                                       : std::nullopt;
  }
  // Members stand in the order of their names.
  std::string_view name_at(std::size_t at) const { return member(by_name_[at]).name; }
  // The first member whose name is not before `name`.
  std::size_t first_from(std::string_view name) const {
    const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                        [&](std::uint32_t number, std::string_view wanted) {
                                          return member(number).name < wanted;
                                        });
    return static_cast<std::size_t>(found - by_name_.begin());
  }
  bool lies_in(std::size_t at, std::string_view folder) const {
    return at < by_name_.size() && name_at(at).starts_with(folder);
  }

 private:
  std::shared_ptr<const ZipMembers> members_;
  InflatedMembers inflated_;
  ChunkCache& cache_;
  std::vector<std::uint32_t> by_name_;  // members, of equal names the last alone
};

using ArchivePtr = std::shared_ptr<const ZipArchive>;

class MemberValue : public StoredValue {
 public:
  // Reads the local header of a member that is stored as it is.
  MemberValue(const ZipArchive& archive, std::uint64_t number)
      : archive_(archive),
        number_(number),
        member_(archive.member(number)),
        begin_(is_stored() ? zip_data_offset(*archive.source(), member_) : 0) {}

  std::uint64_t nbytes() const override { return member_.nbytes; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset == 0 && out.size() == nbytes()) {
      read_zip_member(*archive_.source(), member_, out);
    } else if (is_stored()) {
      archive_.source()->read_at(begin_ + offset, out);
    } else {
      const auto block = archive_.cache().get(archive_.inflated(), number_);
      std::copy_n(block->good_bytes({offset, offset + out.size()}), out.size(), out.begin());
    }
  }

  Guard guard() const override {
    return is_stored() ? Guard{&archive_.members(), number_, 1} : Guard();
  }

 private:
  bool is_stored() const { return member_.method == ZipMember::kStored; }

  const ZipArchive& archive_;
  std::uint64_t number_;
  ZipMember member_;
  std::uint64_t begin_;
};

// A member for as long as it is wanted.
class MemberSource : public ByteSource {
 public:
  MemberSource(ArchivePtr archive, std::uint64_t number, std::string name)
      : ByteSource(std::move(name), archive->member(number).nbytes, archive->source()->mtime_ns()),
        archive_(std::move(archive)),
        value_(*archive_, number) {}

  Identity identity() const override { return archive_->source()->identity(); }
  std::string path() const override { return archive_->source()->path(); }
  void check_unchanged() const override { archive_->source()->check_unchanged(); }
  bool changed() const override { return archive_->source()->changed(); }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    value_.read(offset, out);
  }

  ArchivePtr archive_;
  MemberValue value_;
};

class ZipStorage : public Storage {
 public:
  // `prefix` is empty or ends with a slash.
  ZipStorage(ArchivePtr archive, std::string prefix)
      : archive_(std::move(archive)), prefix_(std::move(prefix)) {}

  std::string name_of(const std::string& key) const override {
    return archive_->source()->name() + "/" + prefix_ + key;
  }

  Kind kind_of(const std::string& key) const override {
    if (key.empty()) {
      return Kind::kFolder;
    }
    if (archive_->find(prefix_ + key)) {
      return Kind::kFile;
    }
    const std::string folder = folder_name(key);
    return archive_->lies_in(archive_->first_from(folder), folder) ? Kind::kFolder : Kind::kNone;
  }

  std::vector<Entry> list(const std::string& prefix) const override {
    const std::string folder = folder_name(prefix);
    std::vector<Entry> entries;
    for (std::size_t at = archive_->first_from(folder); archive_->lies_in(at, folder);) {
      const std::string_view rest = archive_->name_at(at).substr(folder.size());
      const std::size_t slash = rest.find('/');
      const bool is_file = slash == std::string_view::npos;
      const std::string name(rest.substr(0, slash));
      if (!name.starts_with('.')) {
        entries.push_back({name, is_file ? Kind::kFile : Kind::kFolder});
      }
      // Behind everything in that folder: '0' comes after '/'.
      at = is_file ? at + 1 : archive_->first_from(folder + name + "0");
    }
    // "a-b/" stands before "a/".
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.name < b.name; });
    return entries;
  }

  std::optional<std::vector<std::string>> keys_below(const std::string& prefix) const override {
    const std::string folder = folder_name(prefix);
    std::vector<std::string> keys;
    for (std::size_t at = archive_->first_from(folder); archive_->lies_in(at, folder); ++at) {
      keys.emplace_back(archive_->name_at(at).substr(folder.size()));
    }
    return keys;
  }

  StoragePtr below(const std::string& prefix) const override {
    return std::make_shared<ZipStorage>(archive_, folder_name(prefix));
  }

  std::optional<Identity> identify(const std::string& /*key*/) const override {
    return std::nullopt;
  }

  SourcePtr archive() const override { return archive_->source(); }

  SourcePtr open(const std::string& key, const std::string& name) const override {
    const auto number = find_readable(key);
    if (!number) {
      throw file_error(ErrorKind::kNotFound, name_of(key), "the archive has no such member");
    }
    return std::make_shared<MemberSource>(archive_, *number, name.empty() ? name_of(key) : name);
  }

  std::unique_ptr<StoredValue> open_value(const std::string& key,
                                          const Expected& /*expected*/) const override {
    const auto number = find_readable(key);
    return number ? std::make_unique<MemberValue>(*archive_, *number) : nullptr;
  }

  std::optional<Place> find_place(const std::string& key) const override {
    const auto number = archive_->find(prefix_ + key);
    if (!number) {
      return std::nullopt;
    }
    const ZipMember member = readable_member(*number, key);
    if (member.method != ZipMember::kStored) {
      return Place{member.nbytes, true, {}, {}};
    }
    const ByteSource& source = *archive_->source();
    return Place{member.nbytes,
                 false,
                 {&source, zip_data_offset(source, member), member.nbytes},
                 {&archive_->members(), *number, 1}};
  }

  void require_own_name(const std::string& key) const override {
    if (const auto number = archive_->find(prefix_ + key)) {
      zip_data_offset(*archive_->source(), archive_->member(*number));
    }
  }

 private:
  std::string folder_name(const std::string& prefix) const {
    return prefix_ + prefix + (prefix.empty() ? "" : "/");
  }

  ZipMember readable_member(std::uint64_t number, const std::string& key) const {
    const ZipMember member = archive_->member(number);
    if (!member.readable()) {
      throw file_error(ErrorKind::kUnsupported, name_of(key),
                       fmt::format("compression method is {}{}, expected 0 or 8", member.method,
                                   member.encrypted ? ", encrypted" : ""));
    }
    require_plausible(*archive_->source(), member);
    return member;
  }

  // Nothing where there is none.
  std::optional<std::uint64_t> find_readable(const std::string& key) const {
    const auto number = archive_->find(prefix_ + key);
    if (number) {
      const ZipMember member = readable_member(*number, key);
      if (member.method != ZipMember::kStored && member.nbytes > kMostDecodedNbytes) {
        throw file_error(
            ErrorKind::kUnsupported, name_of(key),
            fmt::format("a deflated member has {} bytes, expected at most the {} that npyfs "
                        "decodes at once; store it without compression",
                        member.nbytes, kMostDecodedNbytes));
      }
    }
    return number;
  }

  ArchivePtr archive_;
  std::string prefix_;
};

}  // namespace

StoragePtr open_zip_storage(std::shared_ptr<const ZipMembers> members, ChunkCache& cache) {
  return std::make_shared<ZipStorage>(std::make_shared<ZipArchive>(std::move(members), cache), "");
}

}  // namespace npyfs
