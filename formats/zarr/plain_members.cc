// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/plain_members.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/error.h"

namespace npyfs {

std::optional<PlainMembers> PlainMembers::find(const ArrayValues& values) {
  const auto chunks = values.chunks();
  if (!chunks) {
    return std::nullopt;
  }
  PlainMembers members;
  members.chunk_nbytes_ = values.chunk_nbytes();
  for (const std::uint64_t chunk : *chunks) {
    members.add(values, chunk);
  }
  if (members.deflated_ > 0 && members.chunk_nbytes_ > kMostDecodedNbytes) {
    throw Error(
        ErrorKind::kTooLarge,
        fmt::format("chunks of {} bytes are deflated in the archive, expected at most the {} "
                    "that npyfs decodes at once; store them without compression",
                    members.chunk_nbytes_, kMostDecodedNbytes));
  }
  return members;
}

void PlainMembers::add(const ArrayValues& values, std::uint64_t chunk) {
  Member& added = members_.emplace_back();
  added.chunk = chunk;
  try {
    const auto member = values.storage().find_place(values.key(chunk));
    if (!member || member->nbytes != chunk_nbytes_) {
      throw values.size_error(chunk, member ? member->nbytes : 0);
    }
    if (member->packed) {
      ++deflated_;
      return;
    }
    added.kind = ChunkPlace::Kind::kMapped;
    added.offset = member->extent.offset;
    added.record = member->guard.first;
    archive_ = member->extent.source;
    checksums_ = member->guard.checksums;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
      throw;
    }
    added.kind = ChunkPlace::Kind::kDamaged;
    damage_.emplace(chunk, Damage{Error(ErrorKind::kCorrupt, error.what()), std::nullopt});
  }
}

ChunkPlace PlainMembers::locate(std::uint64_t chunk) const {
  ChunkPlace place;
  const auto found = std::lower_bound(
      members_.begin(), members_.end(), chunk,
      [](const Member& member, std::uint64_t number) { return member.chunk < number; });
  if (found == members_.end() || found->chunk != chunk) {
    return place;  // never written
  }
  place.kind = found->kind;
  if (place.kind == ChunkPlace::Kind::kMapped) {
    place.extent = {archive_, found->offset, chunk_nbytes_};
    place.guard = {checksums_, found->record, 1};
  } else if (place.kind == ChunkPlace::Kind::kDamaged) {
    place.damage = &damage_.at(chunk);
  }
  return place;
}

std::string PlainMembers::storage(const std::string& chunks) const {
  if (deflated_ == 0) {
    return "mapped";
  }
  const std::string cost = fmt::format("a read inflates whole ones ({} bytes)", chunk_nbytes_);
  return deflated_ == members_.size() ? fmt::format("deflated {}, {}", chunks, cost)
                                      : fmt::format("mapped, {} of {} {} deflated, {}", deflated_,
                                                    members_.size(), chunks, cost);
}

}  // namespace npyfs
