// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/linked_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "formats/bytes/error.h"
#include "formats/bytes/folder.h"
#include "formats/hdf5/child_process.h"
#include "formats/hdf5/chunk_reader.h"
#include "formats/hdf5/description.h"
#include "formats/hdf5/read_grids.h"
#include "formats/hdf5/superblock.h"

namespace npyfs {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 10'000;
constexpr std::size_t kMostLinksInARow = 16;
// Links of one small file may fan out into more than could ever be followed.
constexpr std::size_t kMostDescribed = 20'000;
// Of what is left out for its own reason: then their number.
constexpr std::size_t kMostWarnings = 100;
constexpr const char* kOffsets = "_offsets";
// Each linked file has a child of its own, which starts again when it is needed.
constexpr std::size_t kMostChildren = 64;

// To open all: beside it, for each file, and for each MiB of them, since texts are read through.
constexpr std::chrono::seconds kOpenTime{300};
constexpr std::chrono::seconds kOpenTimeOfFile{1};
constexpr std::chrono::milliseconds kOpenTimeOfMiB{100};

// One file; its relative names count from its own folder.
struct LinkedFile {
  std::shared_ptr<Hdf5Process> process;
  Folder folder;
};

bool has_part(const std::string& path, const std::string& part) {
  const fs::path parts(path);
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

class Opener {
 public:
  explicit Opener(OpenContext& context) : context_(context) {}
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;
  // No process is left running: the mount is going to fork, and may never need it.
  ~Opener() {
    for (const auto& [path, file] : files_) {
      file->process->rest();
    }
  }

  StorePtr open(const SourcePtr& source, const std::string& path) {
    LinkedFile& file = add_file(fs::absolute(path).string(), source);
    auto store = std::make_shared<Store>();
    store->sources = {source};
    GroupDescription described = describe_root(file);
    if (described.groups.size() != 1) {
      throw file_error(ErrorKind::kCorrupt, source->name(), "it has no root group");
    }
    const VisitScope scope(*this, {&file, "/"});
    build(file, described.groups.front(), store->root);
    if (left_out_ > kMostWarnings) {
      context_.warn(fmt::format("{}: {} more are left out", printable(source->name()),
                                left_out_ - kMostWarnings));
    }
    store->root.name.clear();
    return store;
  }

 private:
  // What is being opened, from the file that was named on: links that go round come back to it.
  struct Visit {
    const LinkedFile* file;
    std::string path;
    bool operator==(const Visit&) const = default;
  };
  class VisitScope {
   public:
    VisitScope(Opener& opener, Visit visit) : visits_(opener.visits_) {
      if (visits_.size() > kMostLinksInARow ||
          std::find(visits_.begin(), visits_.end(), visit) != visits_.end()) {
        throw Error(ErrorKind::kUnsupported, "it leads back to itself");
      }
      visits_.push_back(std::move(visit));
    }
    ~VisitScope() { visits_.pop_back(); }
    VisitScope(const VisitScope&) = delete;
    VisitScope& operator=(const VisitScope&) = delete;

   private:
    std::vector<Visit>& visits_;
  };

  LinkedFile& add_file(const std::string& absolute, const SourcePtr& source) {
    if (files_.size() >= kMostFiles) {
      is_exhausted_ = true;
      throw file_error(ErrorKind::kTooLarge, source->name(),
                       fmt::format("more than {} files are linked to", kMostFiles));
    }
    if (files_.size() % kMostChildren == 0) {
      for (const auto& [path, other] : files_) {
        other->process->rest();
      }
    }
    end_ += kOpenTimeOfFile + kOpenTimeOfMiB * (source->nbytes() >> 20);
    auto file = std::make_unique<LinkedFile>(
        LinkedFile{std::make_shared<Hdf5Process>(source),
                   Folder(fs::path(absolute).parent_path().string(), true)});
    return *files_.emplace(absolute, std::move(file)).first->second;
  }

  // A file that `from` names; the same one for the same name.
  LinkedFile& linked_file(LinkedFile& from, const std::string& name) {
    if (name == ".") {
      return from;
    }
    const std::string absolute = allowed_path(from, name);
    const auto known = files_.find(absolute);
    return known != files_.end() ? *known->second : add_file(absolute, open_allowed(from, name));
  }

  static std::string allowed_path(const LinkedFile& from, const std::string& name) {
    if (name.empty() || fs::path(name).is_absolute() || has_part(name, "..") ||
        name.find('\0') != std::string::npos) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("it leads to '{}', expected a file below the file's own folder",
                              printable(name)));
    }
    return fs::path(from.folder.path_of(name)).lexically_normal().string();
  }

  static SourcePtr open_allowed(LinkedFile& from, const std::string& name) {
    allowed_path(from, name);
    try {
      return from.folder.open(name);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("it leads to '{}', expected a regular file below the file's own "
                              "folder",
                              printable(name)));
    }
  }

  GroupDescription describe(const LinkedFile& file, const std::string& path) {
    const std::string& name = file.process->source()->name();
    if (++described_ > kMostDescribed) {
      is_exhausted_ = true;
      throw file_error(ErrorKind::kTooLarge, name,
                       fmt::format("more than {} links have been followed", kMostDescribed));
    }
    file.process->source()->check_unchanged();
    WireFrameWriter request(FrameKind::kDescribe);
    request.add_text(path);
    DescriptionReader reader(name, budget_);
    try {
      file.process->ask(request, end_, [&](const WireFrame& frame) { return reader.add(frame); });
    } catch (const Error& error) {
      is_exhausted_ = error.kind() == ErrorKind::kTooLarge || Hdf5Process::Clock::now() > end_;
      throw;
    }
    for (const std::string& warning : reader.warnings()) {
      context_.warn(fmt::format("{}: {}", printable(name), printable(warning)));
    }
    return reader.take();
  }

  // That it is cut explains whatever else is wrong with it.
  GroupDescription describe_root(const LinkedFile& file) {
    try {
      return describe(file, "/");
    } catch (const Error& error) {
      const ByteSource& source = *file.process->source();
      const auto signature = find_signature(source);
      const auto superblock = signature ? read_superblock(source, *signature) : std::nullopt;
      if (error.kind() != ErrorKind::kCorrupt || !superblock ||
          superblock->end <= source.nbytes()) {
        throw;
      }
      throw corrupt_at(source.name(), source.nbytes(),
                       fmt::format("the file ends here, expected {} bytes, as its superblock says; "
                                   "it is cut short: copy it again",
                                   superblock->end));
    }
  }

  void leave_out(const LinkedFile& file, const std::string& path, const Error& error) {
    if (++left_out_ > kMostWarnings) {
      return;
    }
    context_.warn(fmt::format("{}: {}: left out: {}", printable(file.process->source()->name()),
                              printable(path), error.what()));
  }

  void build(LinkedFile& file, GroupDescription& described, Group& group) {
    group.name = described.name;
    group.attributes = std::move(described.attributes);
    for (ArrayDescription& array : described.arrays) {
      add_array(file, array, group);
    }
    for (const ExternalLinkDescription& link : described.links) {
      try {
        follow(file, link, group);
      } catch (const Error& error) {
        require_lenient(error);
        leave_out(file, link.name, error);
      }
    }
    settle_names(file, group.arrays);
    for (GroupDescription& inner : described.groups) {
      build(file, inner, group.groups.emplace_back());
    }
  }

  // NAME_offsets beside sequences says where they begin, whatever else the file calls so: that one
  // gets another name.
  void settle_names(const LinkedFile& file, std::vector<StoredArray>& arrays) const {
    std::map<std::string, std::size_t> names;  // how many have it
    for (const StoredArray& array : arrays) {
      ++names[array.name];
    }
    if (names.size() == arrays.size()) {
      return;
    }
    // Offsets stand directly behind what they are of.
    const auto offsets_follow = [&](std::size_t i, const std::string& name) {
      return i + 1 < arrays.size() && arrays[i + 1].name == name + kOffsets;
    };
    std::map<std::string, std::string> sequences;  // by the name of their offsets
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (offsets_follow(i, arrays[i].name)) {
        sequences.emplace(arrays[i].name + kOffsets, arrays[i].name);
      }
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const std::string old = arrays[i].name;
      const auto of = sequences.find(old);
      if (of == sequences.end() || names[old] < 2 || (i > 0 && arrays[i - 1].name == of->second)) {
        continue;
      }
      std::string name;
      for (int n = 2; name.empty() || names.count(name) != 0; ++n) {
        name = fmt::format("{}~{}", old, n);
      }
      --names[old];
      ++names[name];
      context_.warn(
          fmt::format("{}: {} is shown as {}, since {} says where the sequences of {} begin",
                      printable(file.process->source()->name()), printable(old), printable(name),
                      printable(old), printable(of->second)));
      if (offsets_follow(i, old)) {
        --names[arrays[i + 1].name];
        arrays[i + 1].name = name + kOffsets;
        ++names[arrays[i + 1].name];
      }
      arrays[i].name = name;
    }
  }

  // What changed while it was read, or could not be read just now, is not left out; nor is what
  // takes too much: the next link would, too.
  void require_lenient(const Error& error) const {
    if (error.kind() == ErrorKind::kChanged || error.kind() == ErrorKind::kIo || is_exhausted_) {
      throw;
    }
  }

  void follow(LinkedFile& from, const ExternalLinkDescription& link, Group& group) {
    LinkedFile& file = linked_file(from, link.file);
    const VisitScope scope(*this, {&file, link.path});
    GroupDescription described = describe(file, link.path);
    if (described.groups.empty() && described.arrays.empty() && described.links.empty()) {
      throw file_error(ErrorKind::kNotFound, file.process->source()->name(),
                       fmt::format("it has no group or array {}", printable(link.path)));
    }
    for (GroupDescription& inner : described.groups) {
      inner.name = link.name;
    }
    for (ArrayDescription& array : described.arrays) {
      array.name = link.name;
    }
    described.links.clear();
    Group found;
    build(file, described, found);
    std::move(found.arrays.begin(), found.arrays.end(), std::back_inserter(group.arrays));
    std::move(found.groups.begin(), found.groups.end(), std::back_inserter(group.groups));
  }

  void add_array(LinkedFile& file, ArrayDescription& array, Group& group) {
    try {
      StoredArray stored;
      stored.name = array.name;
      stored.sources = {file.process->source()};
      stored.parts.emplace_back(make_grid(file, array, stored.sources));
      stored.attributes = std::move(array.attributes);
      group.arrays.push_back(std::move(stored));
      const auto* read = std::get_if<ReadStorage>(&array.storage);
      if (read != nullptr && read->form == ReadForm::kConcat) {
        group.arrays.push_back(offsets_of(file, array, *read));
      }
    } catch (const Error& error) {
      require_lenient(error);
      leave_out(file, array.path, error);
    }
  }

  // Where each sequence begins, and the last ends: int64 [N+1].
  static StoredArray offsets_of(const LinkedFile& file, const ArrayDescription& array,
                                const ReadStorage& read) {
    std::vector<std::uint64_t> offsets = {0};
    offsets.insert(offsets.end(), read.row_ends.begin(), read.row_ends.end());
    const auto bytes = std::as_bytes(std::span(offsets));
    StoredArray stored;
    stored.name = array.name + kOffsets;
    stored.sources = {file.process->source()};
    stored.parts.emplace_back(make_mapped_grid(
        DType::simple("<i8"), {offsets.size()},
        std::make_shared<MemorySource>(file.process->source()->name(),
                                       std::vector<std::byte>(bytes.begin(), bytes.end())),
        0));
    return stored;
  }

  using GridPtr = std::shared_ptr<const ChunkGrid>;

  // `sources` gets what the array reads besides the file itself.
  GridPtr make_grid(LinkedFile& file, const ArrayDescription& array,
                    std::vector<SourcePtr>& sources) {
    const SourcePtr& source = file.process->source();
    if (std::holds_alternative<AbsentStorage>(array.storage)) {
      return make_absent_grid(array);
    }
    if (const auto* contiguous = std::get_if<ContiguousStorage>(&array.storage)) {
      return make_mapped_grid(array.dtype, array.shape, source, contiguous->offset);
    }
    if (const auto* compact = std::get_if<CompactStorage>(&array.storage)) {
      const auto bytes = std::as_bytes(std::span(compact->bytes));
      return make_mapped_grid(
          array.dtype, array.shape,
          std::make_shared<MemorySource>(source->name(), std::vector(bytes.begin(), bytes.end())),
          0);
    }
    if (const auto* chunked = std::get_if<ChunkedStorage>(&array.storage)) {
      return make_chunk_reader(array, *chunked, *file.process, end_, context_.warn);
    }
    if (const auto* read = std::get_if<ReadStorage>(&array.storage)) {
      return make_library_grid(array, *read, file.process);
    }
    if (const auto* external = std::get_if<ExternalStorage>(&array.storage)) {
      return make_external(file, array, *external, sources);
    }
    return make_virtual(file, array, std::get<VirtualStorage>(array.storage), sources);
  }

  static GridPtr make_external(LinkedFile& file, const ArrayDescription& array,
                               const ExternalStorage& external, std::vector<SourcePtr>& sources) {
    std::vector<std::pair<SourcePtr, ByteRange>> pieces;
    for (const ExternalStorage::Piece& piece : external.pieces) {
      SourcePtr source = open_allowed(file, piece.file);
      const std::uint64_t begin = std::min(piece.offset, source->nbytes());
      const std::uint64_t nbytes = std::min(piece.nbytes, source->nbytes() - begin);
      sources.push_back(source);
      pieces.emplace_back(std::move(source), ByteRange{begin, begin + nbytes});
      if (nbytes < piece.nbytes) {
        break;  // it may be as long as it likes; the array is long enough or is refused
      }
    }
    const std::string name = sources.back()->name();
    return make_mapped_grid(array.dtype, array.shape, make_joined_source(name, std::move(pieces)),
                            0);
  }

  GridPtr make_virtual(LinkedFile& file, const ArrayDescription& array,
                       const VirtualStorage& storage, std::vector<SourcePtr>& sources) {
    const VisitScope scope(*this, {&file, array.path});
    std::vector<VirtualPart> parts;
    std::set<const SourceArray*> seen;
    std::vector<std::string> missing;
    for (const VirtualStorage::Mapping& mapping : storage.mappings) {
      LinkedFile* const from = find_source_file(file, mapping.file);
      const SourceArray* const found =
          from == nullptr ? nullptr : source_array(*from, mapping.path);
      if (found == nullptr) {
        missing.push_back(fmt::format("{} of {}", mapping.path, mapping.file));
        continue;
      }
      if (seen.insert(found).second) {
        sources.insert(sources.end(), found->sources.begin(), found->sources.end());
      }
      parts.push_back({found->grid, found->sources, mapping.here,
                       mapping.there.value_or(VirtualStorage::whole(found->grid->shape()))});
    }
    if (!missing.empty()) {
      context_.warn(fmt::format(
          "{}: {}: {} of the {} arrays that it is made of are not there, the first of them {}: "
          "its fill value stands for them",
          printable(file.process->source()->name()), printable(array.path), missing.size(),
          storage.mappings.size(), printable(missing.front())));
    }
    return make_virtual_grid(array, std::move(parts), *context_.cache);
  }

  // Null for one that is not there, which is the fill value, as for libhdf5.
  LinkedFile* find_source_file(LinkedFile& from, const std::string& name) {
    try {
      return &linked_file(from, name);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kNotFound) {
        throw;
      }
      return nullptr;
    }
  }

  // What boxes are taken of.
  struct SourceArray {
    GridPtr grid;  // null: there is no such array
    std::vector<SourcePtr> sources;
  };

  // Described, and its index read, once however many boxes are taken of it. Null likewise.
  const SourceArray* source_array(LinkedFile& file, const std::string& path) {
    const auto key = std::make_pair(static_cast<const LinkedFile*>(&file), path);
    auto found = source_arrays_.find(key);
    if (found == source_arrays_.end()) {
      SourceArray made{nullptr, {file.process->source()}};
      const GroupDescription described = describe(file, path);
      if (described.arrays.size() == 1) {
        made.grid = make_grid(file, described.arrays.front(), made.sources);
      }
      found = source_arrays_.emplace(key, std::move(made)).first;
    }
    return found->second.grid == nullptr ? nullptr : &found->second;
  }

  OpenContext& context_;
  std::map<std::string, std::unique_ptr<LinkedFile>> files_;  // by absolute path
  // By file and path.
  std::map<std::pair<const LinkedFile*, std::string>, SourceArray> source_arrays_;
  std::vector<Visit> visits_;
  DescriptionBudget budget_;
  Hdf5Process::Clock::time_point end_ = Hdf5Process::Clock::now() + kOpenTime;
  bool is_exhausted_ = false;
  std::size_t described_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace

StorePtr open_hdf5(const SourcePtr& source, const std::string& path, OpenContext& context) {
  return Opener(context).open(source, path);
}

}  // namespace npyfs
