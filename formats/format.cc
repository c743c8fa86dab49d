// SPDX-License-Identifier: Apache-2.0

#include "formats/format.h"

namespace npyfs {

void Column::decode(std::uint64_t /*record*/, std::span<std::byte> /*out*/,
                    DecodeContext& /*context*/) const {
  throw std::logic_error("a column that never says decoded() was asked to decode");
}

std::string OpenContext::decode_kind(const std::string& name) const {
  const auto found = decode.find(name);
  return found != decode.end() ? found->second : std::string();
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
