// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/items.h"

#include <algorithm>
#include <utility>

namespace npyfs {

namespace {

// Items that must be decoded and are small are decoded together: a block of the cache then pays for
// its bookkeeping. No block is larger than this unless it is one item.
constexpr std::uint64_t kGroupNbytes = std::uint64_t{64} << 10;

}  // namespace

Items::Items(ItemsOf of)
    : of_(std::move(of)),
      row_nbytes_(row_elements(of_.shape) * of_.dtype.itemsize),
      equal_rows_(of_.shape.empty() ? 1 : of_.shape.front()) {
  if (of_.storage.empty()) {
    of_.storage = find_storage();
  }
}

// Whether anything is decoded. The first items decide for all formats except mixed Kaldi tables;
// there only `info`'s output depends on it.
std::string Items::find_storage() const {
  const std::uint64_t looked_at = std::min<std::uint64_t>(size(), 64);
  for (std::uint64_t record = 0; record < looked_at; ++record) {
    if (damage(record) == nullptr && nbytes(record) > 0 && of_.column->decoded(record)) {
      return "decoded";
    }
  }
  return "mapped";
}

// Counts the items from `record` on that are decoded together with it, including it.
std::uint64_t Items::decoded_run(std::uint64_t record, const Group& group,
                                 std::uint64_t most) const {
  const std::uint64_t end = std::min(group.last, record + most);
  std::uint64_t next = record + 1;
  while (next < end && of_.column->decoded(next)) {
    ++next;
  }
  return next - record;
}

std::uint64_t Items::plan(std::uint64_t record, std::uint64_t most, ByteRange range,
                          Plan& plan) const {
  if (const Damage* why = damage(record)) {
    plan.add_damaged(why->error, (most > 1 ? nbytes(record) : range.end) - range.begin);
    return 1;
  }
  const bool decoded = of_.column->decoded(record);
  const Group group = decoded ? group_of(record) : Group();
  std::uint64_t run = 1;
  if (most > 1) {
    most = of_.damaged != nullptr ? std::min(most, of_.damaged->run(record, size())) : most;
    run = decoded ? decoded_run(record, group, most) : std::min(of_.column->run(record), most);
    range.end = std::min(range.end, begin(record + run) - begin(record));
  }
  if (decoded) {
    plan.add_chunk(*this, group.first, begin(record) - begin(group.first) + range.begin,
                   range.nbytes());
  } else if (!range.empty()) {
    of_.column->plan(record, range, plan);
  }
  return run;
}

// A group ends every kGroupNbytes bytes and every group_records items. An item that crosses a byte
// boundary is its own group. Items of equal length are grouped by number alone: as many as fit.
Items::Group Items::group_of(std::uint64_t record) const {
  if (of_.offsets == nullptr) {
    const std::uint64_t item_nbytes = std::max<std::uint64_t>(nbytes(record), 1);
    const std::uint64_t records =
        std::clamp<std::uint64_t>(kGroupNbytes / item_nbytes, 1, of_.group_records);
    const std::uint64_t first = record / records * records;
    return {first, std::min(first + records, size())};
  }
  const std::uint64_t at = begin(record);
  const std::uint64_t group_begin = at - at % kGroupNbytes;
  const std::uint64_t group_end = group_begin + kGroupNbytes;
  if (begin(record + 1) > group_end) {
    return {record, record + 1};
  }
  std::uint64_t first = record - record % of_.group_records;
  std::uint64_t last = std::min(first + of_.group_records, size());
  while (begin(first) < group_begin) {
    ++first;
  }
  while (begin(last) > group_end) {
    --last;
  }
  return {first, last};
}

std::uint64_t Items::chunk_nbytes(std::uint64_t chunk) const {
  const auto [first, last] = group_of(chunk);
  return begin(last) - begin(first);
}

void Items::decode(std::uint64_t chunk, std::span<std::byte> out, DecodeContext& context) const {
  const auto [first, last] = group_of(chunk);
  for (std::uint64_t record = first; record < last; ++record) {
    const ByteRange item{begin(record) - begin(first), begin(record + 1) - begin(first)};
    if (item.empty() || damage(record) != nullptr || !of_.column->decoded(record)) {
      continue;
    }
    try {
      of_.column->decode(record, out.subspan(item.begin, item.nbytes()), context);
    } catch (const Error& error) {
      // Damage concerns this record alone. Any other fault (the source is gone) concerns the whole
      // group.
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      context.mark_damaged(item, std::current_exception());
    }
  }
}

}  // namespace npyfs
