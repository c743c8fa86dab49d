// SPDX-License-Identifier: Apache-2.0

#include "formats/record_table.h"

#include <map>

namespace npyfs {

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

}  // namespace npyfs
