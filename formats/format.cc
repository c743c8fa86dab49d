// SPDX-License-Identifier: Apache-2.0

#include "formats/format.h"

#include "formats/bytes/paths.h"

namespace npyfs {

void Column::decode(std::uint64_t /*record*/, std::span<std::byte> /*out*/,
                    DecodeContext& /*context*/) const {
  throw std::logic_error("a column that never says decoded() was asked to decode");
}

std::vector<std::uint64_t> RecordTable::shard_starts() const {
  if (size() == 0) {
    return {};
  }
  std::vector<std::uint64_t> starts{0};
  if (stored().empty() || sources().size() < 2) {
    return starts;
  }
  const ByteColumn& bytes = *stored().front().bytes;
  const ByteSource* shard = nullptr;
  std::vector<Extent> extents;
  for (std::uint64_t record = 0; record < size(); ++record) {
    // A record that is damaged or has no bytes lies where the one before it does.
    if (damage(record) != nullptr || bytes.damage(record) != nullptr ||
        !bytes.locate(record, extents) || extents.empty() || extents.front().source == shard) {
      continue;
    }
    if (shard != nullptr) {
      starts.push_back(record);
    }
    shard = extents.front().source;
  }
  return starts;
}

std::string OpenContext::decode_kind(const std::string& name) const {
  const auto found = decode.find(name);
  return found != decode.end() ? found->second : std::string();
}

Confinement OpenContext::confined_to(const std::string& folder) const {
  if (!confine) {
    return Confinement();
  }
  return base_dir.empty() ? Confinement({folder}) : Confinement({folder, base_dir});
}

StoragePtr OpenContext::storage(const std::string& path) const {
  return open_storage(path, confined_to(path.empty() ? "." : path), kept_descriptors);
}

SourcePtr OpenContext::open_beside(const std::string& path) const {
  return storage(folder_of_path(path))
      ->find(std::string(name_of_path(path)), Storage::Keep::kAlways);
}

void settle_bids(std::vector<Field>& fields) {
  std::map<std::string, const Field*> winners;
  for (const Field& field : fields) {
    if (field.bid) {
      const Field*& winner = winners[field.bid->name];
      winner = winner == nullptr || field.bid->place < winner->bid->place ? &field : winner;
    }
  }
  for (Field& field : fields) {
    if (field.bid) {
      field.name = winners[field.bid->name] == &field ? field.bid->name : field.bid->otherwise;
    }
  }
}

}  // namespace npyfs
