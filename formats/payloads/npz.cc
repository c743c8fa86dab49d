// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/inflate.h"
#include "formats/bytes/part_source.h"
#include "formats/bytes/zip.h"
#include "formats/bytes/zip_members.h"

namespace npyfs {

namespace {

constexpr std::string_view kSuffix = ".npy";

// A deflated member of usual size: decoded at once, when it is first asked for.
class WholeMember : public ChunkSource {
 public:
  WholeMember(std::shared_ptr<const ZipMembers> members, const ZipMember& member)
      : members_(std::move(members)), member_(member) {}

  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return member_.nbytes; }
  void decode(std::uint64_t /*chunk*/, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    read_zip_member(*members_->archive(), member_, out);
  }

 private:
  std::shared_ptr<const ZipMembers> members_;  // has the member's name
  ZipMember member_;
};

// The beginning of a deflated member, for those who need no more: decoded anew for each read, and
// never verified.
class MemberHead : public ByteSource {
 public:
  MemberHead(SourcePtr archive, std::string name, std::uint64_t offset, const ZipMember& member)
      : ByteSource(std::move(name), member.nbytes, 0),
        archive_(std::move(archive)),
        range_{offset, offset + member.stored_nbytes} {}

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::vector<std::byte> head = inflate_raw_head(*archive_, range_, offset + out.size());
    if (head.size() < offset + out.size()) {
      throw corrupt_at(name(), range_.begin,
                       fmt::format("the deflate stream ends or is damaged after {} bytes, expected "
                                   "{}; the file is damaged",
                                   head.size(), nbytes()));
    }
    std::copy(head.begin() + static_cast<std::ptrdiff_t>(offset), head.end(), out.begin());
  }

  SourcePtr archive_;
  ByteRange range_;
};

// Whoever walks the groups goes down as deep as they are.
constexpr std::size_t kMostParts = 32;

// "a/b.npy" as the names above it and its own; nothing where a part is no name.
std::optional<std::vector<std::string>> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") {
      return std::nullopt;
    }
    if (parts.size() <= kMostParts) {  // what has more is refused
      parts.emplace_back(part);
    }
    if (slash == std::string_view::npos) {
      return parts;
    }
    path.remove_prefix(slash + 1);
  }
}

// A group while members are added to it.
struct Folder {
  std::vector<StoredArray> arrays;
  std::map<std::string, Folder> folders;

  Group to_group(const std::string& name) && {
    Group group;
    group.name = name;
    group.arrays = std::move(arrays);
    for (auto& [inner, folder] : folders) {
      group.groups.push_back(std::move(folder).to_group(inner));
    }
    return group;
  }
};

class NpzReader {
 public:
  NpzReader(const SourcePtr& source, OpenContext& context)
      : source_(source), context_(context), members_(std::make_shared<const ZipMembers>(source)) {}

  StorePtr read() {
    const ZipDirectory& directory = members_->directory();
    for (std::uint64_t i = 0; i < directory.size(); ++i) {
      const ZipMember member = directory[i];
      if (member.name.ends_with('/')) {
        continue;
      }
      if (directory.replaced(i)) {
        warn_of(member, "a later member has its name");
      } else {
        read_member(i, member);
      }
    }
    auto store = std::make_shared<Store>();
    store->root = std::move(root_).to_group("");
    store->sources = {source_};
    return store;
  }

 private:
  // More is decoded piece by piece, between access points that one pass at mount notes.
  static constexpr std::uint64_t kMostWholeNbytes = std::uint64_t{64} << 20;

  void warn_of(const ZipMember& member, const std::string& why) const {
    constexpr std::size_t kMostShown = 256;
    const std::string_view name = member.name.substr(0, kMostShown);
    context_.warn(fmt::format("{}: member {}{} is left out: {}", printable(source_->name()),
                              printable(name), name.size() < member.name.size() ? "..." : "", why));
  }

  void read_member(std::uint64_t number, const ZipMember& member) {
    const auto path = split_path(member.name);
    if (!path) {
      warn_of(member, "its path is absolute or has an empty, '.' or '..' part");
      return;
    }
    if (path->size() > kMostParts) {
      warn_of(member, fmt::format("its path has more than {} parts", kMostParts));
      return;
    }
    if (!member.name.ends_with(kSuffix) || path->back().size() == kSuffix.size()) {
      warn_of(member, "it is no .npy file");
      return;
    }
    try {
      StoredArray array;
      array.name = path->back().substr(0, path->back().size() - kSuffix.size());
      array.sources = {source_};
      array.parts.emplace_back(open_member(number, member));
      folder_for(*path).arrays.push_back(std::move(array));
    } catch (const Error& error) {
      const bool damaged = error.kind() == ErrorKind::kCorrupt;
      if (error.kind() != ErrorKind::kUnsupported && !(damaged && context_.permissive)) {
        throw;
      }
      warn_of(member, error.what());
    }
  }

  Folder& folder_for(const std::vector<std::string>& path) {
    Folder* folder = &root_;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      folder = &folder->folders[path[i]];
    }
    return *folder;
  }

  StoredNpy open_member(std::uint64_t number, const ZipMember& member) {
    if (!member.readable()) {
      throw Error(ErrorKind::kUnsupported,
                  member.encrypted ? "it is encrypted"
                                   : fmt::format("it is compressed by method {}, expected 0 "
                                                 "(stored) or 8 (deflated)",
                                                 member.method));
    }
    require_plausible(*source_, member);
    const std::uint64_t offset = zip_data_offset(*source_, member);
    if (member.method == ZipMember::kStored) {
      StoredNpy npy = read_stored_npy(source_, offset, member.nbytes);
      npy.guarded_by = members_;
      npy.record = number;
      return npy;
    }
    return open_deflated_member(member, offset);
  }

  StoredNpy open_deflated_member(const ZipMember& member, std::uint64_t offset) {
    const std::string name = fmt::format("{} ({})", source_->name(), printable(member.name));
    StoredNpy npy = read_stored_npy(std::make_shared<MemberHead>(source_, name, offset, member), 0,
                                    member.nbytes);
    npy.storage = "deflated";
    auto part = std::make_shared<PartSource>(source_, name, offset, member.stored_nbytes);
    if (member.nbytes <= kMostWholeNbytes) {
      npy.source = std::make_shared<CachedSource>(std::move(part), member.nbytes, member.nbytes,
                                                  std::make_unique<WholeMember>(members_, member),
                                                  *context_.cache);
    } else {
      npy.source = open_deflated(std::move(part), member.nbytes, member.crc32, *context_.cache, {});
    }
    return npy;
  }

  SourcePtr source_;
  OpenContext& context_;
  std::shared_ptr<const ZipMembers> members_;
  Folder root_;
};

}  // namespace

bool is_npz(const ByteSource& source) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source.nbytes(), 4));
  source.read_at(0, head);
  if (!is_zip(head)) {
    return false;
  }
  try {
    const ZipDirectory directory(source);
    std::uint64_t arrays = 0;
    std::uint64_t files = 0;
    for (std::uint64_t i = 0; i < directory.size(); ++i) {
      const std::string_view name = directory[i].name;
      files += !name.ends_with('/');
      arrays += name.ends_with(kSuffix);
    }
    return 2 * arrays > files;
  } catch (const Error&) {
    return false;
  }
}

StorePtr open_npz(const SourcePtr& source, OpenContext& context) {
  return NpzReader(source, context).read();
}

}  // namespace npyfs
