// SPDX-License-Identifier: Apache-2.0
//
// A zip archive as a store. The directory is read when it is opened; of several members of one name
// the last counts, as for every writer that replaces values by appending.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/zip.h"
#include "formats/bytes/zip_members.h"
#include "formats/chunk_grid.h"
#include "formats/zarr/key_store.h"
#include "formats/zarr/renamed_members.h"

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

// A deflated member: decoded and verified as a whole before any of it is handed out.
class DeflatedMember : public StoredValue {
 public:
  DeflatedMember(const ZipMembers& members, std::uint64_t number, const InflatedMembers& inflated,
                 ChunkCache& cache)
      : members_(members), number_(number), inflated_(inflated), cache_(cache) {}

  std::uint64_t nbytes() const override { return members_.directory()[number_].nbytes; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset == 0 && out.size() == nbytes()) {
      read_zip_member(*members_.archive(), members_.directory()[number_], out);
      return;
    }
    const auto block = cache_.get(inflated_, number_);
    std::copy_n(block->good_bytes({offset, offset + out.size()}), out.size(), out.begin());
  }

 private:
  const ZipMembers& members_;
  std::uint64_t number_;
  const InflatedMembers& inflated_;
  ChunkCache& cache_;
};

// A member that is stored as it is.
class StoredMember : public StoredValue {
 public:
  StoredMember(const ZipMembers& members, std::uint64_t number)
      : members_(members),
        number_(number),
        begin_(zip_data_offset(archive(), members.directory()[number])) {}

  std::uint64_t nbytes() const override { return members_.directory()[number_].nbytes; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset == 0 && out.size() == nbytes()) {
      read_zip_member(archive(), members_.directory()[number_], out);
    } else {
      archive().read_at(begin_ + offset, out);
    }
  }

  Guard guard() const override { return {&members_, number_, 1}; }

 private:
  const ByteSource& archive() const { return *members_.archive(); }

  const ZipMembers& members_;
  std::uint64_t number_;
  std::uint64_t begin_;
};

class ZipStore : public KeyStore {
 public:
  ZipStore(SourcePtr archive, OpenContext& context)
      : archive_(archive),
        members_(std::move(archive)),
        directory_(members_.directory()),
        inflated_(members_),
        cache_(*context.cache) {
    std::uint64_t refused = 0;
    std::string_view first_refused;
    RenamedMembers renamed;
    std::set<std::uint64_t> of_one_name;
    for (std::uint64_t i = 0; i < directory_.size(); ++i) {
      const std::string_view name = directory_[i].name;
      if (name.ends_with('/')) {
        continue;
      }
      if (!is_key(name)) {
        first_refused = refused++ == 0 ? name : first_refused;
        continue;
      }
      if (!directory_.replaced(i)) {
        by_name_.push_back(static_cast<std::uint32_t>(i));
      } else {
        // Written anew, or by a flipped bit of the same name as another one: this one, or that.
        of_one_name.insert({i, *directory_.find(name)});
      }
    }
    for (const std::uint64_t member : of_one_name) {
      renamed.look_at([&] { zip_data_offset(*archive_, directory_[member]); });
    }
    renamed.tell("with the name of another one", context.warn);
    std::sort(by_name_.begin(), by_name_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return directory_[a].name < directory_[b].name;
    });
    if (refused > 0) {
      context.warn(fmt::format(
          "{}: member '{}'{} left out: its path is absolute or has an empty, '.' or '..' part",
          printable(archive_->name()), printable(first_refused),
          refused > 1 ? fmt::format(" and {} more are", refused - 1) : std::string(" is")));
    }
    drop_prefix();
    warn_of_strays(context.warn);
  }

  std::string name_of(const std::string& key) const override {
    return archive_->name() + "/" + prefix_ + key;
  }

  std::unique_ptr<StoredValue> open(const std::string& key,
                                    const FileIdentity* /*noted*/) const override {
    const auto index = find(key);
    if (!index) {
      return nullptr;
    }
    const ZipMember member = readable_member(*index, key);
    if (member.method == ZipMember::kStored) {
      return std::make_unique<StoredMember>(members_, *index);
    }
    if (member.nbytes > kMostDecodedNbytes) {
      throw file_error(ErrorKind::kUnsupported, name_of(key),
                       fmt::format("a deflated member has {} bytes, expected at most the {} that "
                                   "npyfs decodes at once; store it without compression",
                                   member.nbytes, kMostDecodedNbytes));
    }
    return std::make_unique<DeflatedMember>(members_, *index, inflated_, cache_);
  }

  SourcePtr open_source(const std::string& key) const override {
    return find(key) ? archive_ : nullptr;
  }

  std::vector<std::string> children(const std::string& prefix) const override {
    const std::string folder = prefix_ + (prefix.empty() ? "" : prefix + "/");
    std::vector<std::string> names;
    for (std::size_t at = first_from(folder); lies_in(at, folder);) {
      const std::string_view rest = name_at(at).substr(folder.size());
      const std::size_t slash = rest.find('/');
      if (slash == std::string_view::npos) {
        ++at;
        continue;
      }
      names.emplace_back(rest.substr(0, slash));
      // Behind everything in that folder: '0' comes after '/'.
      at = first_from(folder + names.back() + "0");
    }
    std::sort(names.begin(), names.end());  // "a-b/" stands before "a/"
    return names;
  }

  bool is_folder(const std::string& prefix) const override {
    const std::string folder = prefix_ + prefix + "/";
    return lies_in(first_from(folder), folder);
  }

  std::optional<Member> find_member(const std::string& key) const override {
    const auto index = find(key);
    if (!index) {
      return std::nullopt;
    }
    const ZipMember member = readable_member(*index, key);
    if (member.method != ZipMember::kStored) {
      return Member{member.nbytes, true, {}, {}};
    }
    return Member{member.nbytes,
                  false,
                  {archive_.get(), zip_data_offset(*archive_, member), member.nbytes},
                  {&members_, *index, 1}};
  }

  void require_own_name(const std::string& key) const override {
    if (const auto index = find(key)) {
      zip_data_offset(*archive_, directory_[*index]);
    }
  }

  std::optional<std::vector<std::string>> keys_below(const std::string& prefix) const override {
    const std::string folder = prefix_ + (prefix.empty() ? "" : prefix + "/");
    std::vector<std::string> keys;
    for (std::size_t at = first_from(folder); lies_in(at, folder); ++at) {
      keys.emplace_back(name_at(at).substr(folder.size()));
    }
    return keys;
  }

 private:
  ZipMember readable_member(std::uint64_t index, const std::string& key) const {
    const ZipMember member = directory_[index];
    if (!member.readable()) {
      throw file_error(ErrorKind::kUnsupported, name_of(key),
                       fmt::format("compression method is {}{}, expected 0 or 8", member.method,
                                   member.encrypted ? ", encrypted" : ""));
    }
    require_plausible(*archive_, member);
    return member;
  }

  std::optional<std::uint32_t> find(const std::string& key) const {
    const std::string name = prefix_ + key;
    const std::size_t at = first_from(name);
    return at < by_name_.size() && name_at(at) == name ? std::optional(by_name_[at]) : std::nullopt;
  }

  std::string_view name_at(std::size_t at) const { return directory_[by_name_[at]].name; }

  // The first member whose name is not before `name`.
  std::size_t first_from(std::string_view name) const {
    const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                        [&](std::uint32_t member, std::string_view wanted) {
                                          return directory_[member].name < wanted;
                                        });
    return static_cast<std::size_t>(found - by_name_.begin());
  }

  bool lies_in(std::size_t at, std::string_view folder) const {
    return at < by_name_.size() && name_at(at).starts_with(folder);
  }

  // Many zip the folder rather than what is in it: the root is the deepest folder that holds all
  // metadata. Stores beside each other are its groups.
  void drop_prefix() {
    bool is_first = true;
    for (const std::uint32_t member : by_name_) {
      const std::string_view name = directory_[member].name;
      const std::string_view folder = name.substr(0, name.find_last_of('/') + 1);
      if (!names_node(name.substr(folder.size()))) {
        continue;
      }
      if (is_first) {
        prefix_ = folder;
        is_first = false;
      }
      while (!folder.starts_with(prefix_)) {
        prefix_.pop_back();
        prefix_.resize(prefix_.find_last_of('/') + 1);
      }
    }
  }

  // Nobody asks for what does not lie in the root.
  void warn_of_strays(const std::function<void(const std::string&)>& warn) const {
    RenamedMembers renamed;
    for (const std::uint32_t member : by_name_) {
      if (!directory_[member].name.starts_with(prefix_)) {
        renamed.look_at([&] { zip_data_offset(*archive_, directory_[member]); });
      }
    }
    renamed.tell("outside of the store", warn);
  }

  SourcePtr archive_;
  ZipMembers members_;
  const ZipDirectory& directory_;
  InflatedMembers inflated_;
  ChunkCache& cache_;
  std::vector<std::uint32_t> by_name_;  // members, of equal names the last alone
  std::string prefix_;                  // of all keys: empty, or with its slash
};

}  // namespace

std::shared_ptr<const KeyStore> open_zip_store(SourcePtr archive, OpenContext& context) {
  return std::make_shared<ZipStore>(std::move(archive), context);
}

}  // namespace npyfs
