// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/inspected_column.h"

#include <fmt/format.h>

#include "formats/extents.h"

namespace npyfs {

namespace {

// How many unusual headers are verified, as long as their records turn out intact: items that
// differ everywhere are no damage, and not all records can be read at mount.
constexpr int kMaxSurprises = 16;
// A larger record is believed, unless the whole array depends on it.
constexpr std::uint64_t kMaxProbeNbytes = std::uint64_t{64} << 20;

}  // namespace

void InspectedColumn::inspect(std::uint64_t record, Item& item) const {
  item.damage = damage(record);
  item.present = !absent_.contains(record);
  if (item.damage == nullptr && item.present) {
    describe(record, item);
  }
}

const Damage* InspectedColumn::damage(std::uint64_t record) const {
  if (const Damage* known = bytes_->damage(record)) {
    return known;
  }
  return damage_.empty() ? nullptr : damage_.find(record);
}

void InspectedColumn::look_at_all(const PayloadField& field, std::size_t window_nbytes) {
  RecordBytes payload(*bytes_, window_nbytes);
  for (std::uint64_t record = 0; record < bytes_->size(); ++record) {
    if (bytes_->damage(record) == nullptr) {
      look_at_one(record, field, payload);
    }
  }
  absent_.optimize();
  damage_.shrink();
  for (std::uint64_t record = 0; !field.named && !first_ && record < bytes_->size(); ++record) {
    if (const Damage* found = damage_.empty() ? nullptr : damage_.find(record)) {
      throw Error(ErrorKind::kUnsupported, found->error.what());
    }
  }
}

void InspectedColumn::look_at_one(std::uint64_t record, const PayloadField& field,
                                  RecordBytes& payload) {
  if (!payload.open(record) || payload.nbytes() == 0) {
    absent_.add(record);
    return;
  }
  const auto find_fault = [&] { return field.verifier.fault_of(bytes_->guard(record)); };
  try {
    set_.reset();
    look_at(record, payload);
  } catch (const Error& error) {
    const auto fault = error.kind() == ErrorKind::kUnsupported ? find_fault() : std::nullopt;
    if (fault) {
      add_mismatch(record, *fault);
    } else if (error.kind() == ErrorKind::kCorrupt) {
      add_damage(record, field.table, error, std::nullopt);
    } else {
      throw;
    }
    return;
  }
  if (set_) {
    add_damage(record, field.table, set_->error, set_->nbytes);
    return;
  }
  if (is_surprise(record, payload.nbytes())) {
    if (const auto fault = find_fault()) {
      add_mismatch(record, *fault);
      return;
    }
    ++intact_surprises_;
  }
  first_ = first_.value_or(record);
  previous_ = record;
}

bool InspectedColumn::is_surprise(std::uint64_t record, std::uint64_t nbytes) {
  const bool affordable = nbytes <= kMaxProbeNbytes && intact_surprises_ < kMaxSurprises;
  if (!first_) {
    return affordable;
  }
  if (alike(*previous_, record)) {
    return false;
  }
  // Once it is known that the field makes no array, nothing hangs on the others.
  return affordable || (one_array(*first_, *previous_) && !one_array(*first_, record));
}

void InspectedColumn::add_damage(std::uint64_t record, const RecordTable& table, const Error& why,
                                 std::optional<std::uint64_t> nbytes) {
  damage_.add(record, why.said(), [&] {
    return Damage{why.wrapped("", fmt::format(" ({})", record_name(table, record))), nbytes};
  });
}

void InspectedColumn::add_mismatch(std::uint64_t record, const Error& fault) {
  damage_.add(record, fault.said(), [&] { return Damage{fault, std::nullopt}; });
}

void InspectedColumn::set_damaged(const Error& why, std::uint64_t nbytes) {
  set_ = Damage{why, nbytes};
}

void InspectedColumn::require_readable(const PayloadBytes& payload) {
  if (payload.nbytes() > kMostStoredNbytes) {
    throw payload.fault(0, fmt::format("the payload has {} bytes, expected at most {} of what is "
                                       "decoded as a whole",
                                       payload.nbytes(), kMostStoredNbytes));
  }
  if (is_mostly_holes(payload.nbytes(), payload.hole_nbytes())) {
    throw payload.fault(0, fmt::format("the payload has {} bytes of which {} are holes, expected "
                                       "fewer of what is decoded as a whole",
                                       payload.nbytes(), payload.hole_nbytes()));
  }
}

void InspectedColumn::require_intact(std::uint64_t record, DecodeContext& context) const {
  context.require_intact(bytes_->guard(record));
}

std::vector<std::byte> InspectedColumn::read_whole(std::uint64_t record,
                                                   DecodeContext& context) const {
  require_intact(record, context);
  std::vector<std::byte> stored(stored_nbytes(*bytes_, record));
  read_stored(*bytes_, record, 0, stored);
  return stored;
}

Error InspectedColumn::fault(std::uint64_t record, const std::string& text) const {
  RecordBytes payload(*bytes_, 0);
  payload.open(record);
  return payload.fault(0, text);
}

}  // namespace npyfs
