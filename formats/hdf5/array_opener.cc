// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/array_opener.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <variant>

#include "formats/bytes/error.h"
#include "formats/hdf5/array_names.h"
#include "formats/hdf5/chunk_reader.h"
#include "formats/hdf5/read_grids.h"

namespace npyfs {

namespace {

using GridPtr = std::shared_ptr<const ChunkGrid>;

// Where each sequence begins, and the last ends: int64 [N+1].
StoredArray offsets_of(const LinkedFile& file, const ArrayDescription& array,
                       const ReadStorage& read) {
  std::vector<std::uint64_t> offsets = {0};
  offsets.insert(offsets.end(), read.row_ends.begin(), read.row_ends.end());
  const auto bytes = std::as_bytes(std::span(offsets));
  StoredArray stored;
  stored.name = array.name + kOffsetsSuffix;
  stored.sources = {file.source()};
  stored.parts.emplace_back(make_mapped_grid(
      DType::simple("<i8"), {offsets.size()},
      std::make_shared<MemorySource>(file.source()->name(),
                                     std::vector<std::byte>(bytes.begin(), bytes.end())),
      0));
  return stored;
}

GridPtr make_external(LinkedFile& file, const ArrayDescription& array,
                      const ExternalStorage& external, std::vector<SourcePtr>& sources) {
  std::vector<std::pair<SourcePtr, ByteRange>> pieces;
  for (const ExternalStorage::Piece& piece : external.pieces) {
    SourcePtr source = FileSet::open_raw(file, piece.file);
    const std::uint64_t begin = std::min(piece.offset, source->nbytes());
    const std::uint64_t nbytes = std::min(piece.nbytes, source->nbytes() - begin);
    sources.push_back(source);
    pieces.emplace_back(std::move(source), ByteRange{begin, begin + nbytes});
    if (nbytes < piece.nbytes) {
      break;  // it may be as long as it likes; the array is long enough or is refused
    }
  }
  const std::string name = sources.back()->name();
  return make_mapped_grid(array.dtype, array.shape, make_joined_source(name, std::move(pieces)), 0);
}

}  // namespace

std::vector<StoredArray> ArrayOpener::open(LinkedFile& file, ArrayDescription& array) {
  std::vector<StoredArray> arrays(1);
  StoredArray& stored = arrays.front();
  stored.name = array.name;
  stored.sources = {file.source()};
  stored.parts.emplace_back(make_grid(file, array, stored.sources));
  stored.attributes = std::move(array.attributes);
  const auto* read = std::get_if<ReadStorage>(&array.storage);
  if (read != nullptr && read->form == ReadForm::kConcat) {
    arrays.push_back(offsets_of(file, array, *read));
  }
  return arrays;
}

ArrayOpener::GridPtr ArrayOpener::make_grid(LinkedFile& file, const ArrayDescription& array,
                                            std::vector<SourcePtr>& sources) {
  const SourcePtr& source = file.source();
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
        std::make_shared<MemorySource>(source->name(), std::vector(bytes.begin(), bytes.end())), 0);
  }
  if (const auto* chunked = std::get_if<ChunkedStorage>(&array.storage)) {
    return make_chunk_reader(array, *chunked, *file.process, files_.end(), context_.warn);
  }
  if (const auto* read = std::get_if<ReadStorage>(&array.storage)) {
    return make_library_grid(array, *read, file.process);
  }
  if (const auto* external = std::get_if<ExternalStorage>(&array.storage)) {
    return make_external(file, array, *external, sources);
  }
  return make_virtual(file, array, std::get<VirtualStorage>(array.storage), sources);
}

ArrayOpener::GridPtr ArrayOpener::make_virtual(LinkedFile& file, const ArrayDescription& array,
                                               const VirtualStorage& storage,
                                               std::vector<SourcePtr>& sources) {
  const LinkFollower::VisitScope scope(links_, {&file, array.path, LinkFollower::Visit::kVirtual});
  std::vector<VirtualPart> parts;
  std::set<const SourceArray*> seen;
  std::vector<std::string> missing;
  for (const VirtualStorage::Mapping& mapping : storage.mappings) {
    LinkedFile* const from = find_source_file(file, mapping.file);
    const SourceArray* const found = from == nullptr ? nullptr : source_array(*from, mapping.path);
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
        printable(file.source()->name()), printable(array.path), missing.size(),
        storage.mappings.size(), printable(missing.front())));
  }
  return make_virtual_grid(array, std::move(parts), *context_.cache, patience_);
}

LinkedFile* ArrayOpener::find_source_file(LinkedFile& from, const std::string& name) {
  try {
    return &files_.find(from, name);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNotFound) {
      throw;
    }
    return nullptr;
  }
}

const ArrayOpener::SourceArray* ArrayOpener::source_array(LinkedFile& file,
                                                          const std::string& path) {
  const auto key = std::make_pair(static_cast<const LinkedFile*>(&file), path);
  auto found = source_arrays_.find(key);
  if (found == source_arrays_.end()) {
    LinkFollower::Found at = links_.find_object(file, path);
    SourceArray made{nullptr, {at.file->source()}};
    if (at.described.arrays.size() == 1) {
      made.grid = make_grid(*at.file, at.described.arrays.front(), made.sources);
    }
    found = source_arrays_.emplace(key, std::move(made)).first;
  }
  return found->second.grid == nullptr ? nullptr : &found->second;
}

}  // namespace npyfs
