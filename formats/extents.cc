// SPDX-License-Identifier: Apache-2.0

#include "formats/extents.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/zero_source.h"

namespace npyfs {

namespace {

constexpr std::byte kHole{0};

// Reused, so that planning a read allocates nothing.
std::vector<Extent>& scratch_extents() {
  thread_local std::vector<Extent> extents;
  extents.clear();
  return extents;
}

}  // namespace

std::uint64_t stored_nbytes(const ByteColumn& column, std::uint64_t record) {
  std::vector<Extent>& extents = scratch_extents();
  std::uint64_t sum = 0;
  if (column.locate(record, extents)) {
    for (const Extent& extent : extents) {
      sum += extent.nbytes;
    }
  }
  return sum;
}

bool is_mostly_holes(std::uint64_t nbytes, std::uint64_t hole_nbytes) {
  constexpr std::uint64_t kAmpleNbytes = std::uint64_t{64} << 20;
  constexpr std::uint64_t kMostTimes = 1024;
  return nbytes > kAmpleNbytes && nbytes / kMostTimes > nbytes - hole_nbytes;
}

bool is_mostly_holes(const ByteColumn& column, std::uint64_t record) {
  std::vector<Extent>& extents = scratch_extents();
  column.locate(record, extents);
  std::uint64_t nbytes = 0;
  std::uint64_t hole_nbytes = 0;
  for (const Extent& extent : extents) {
    nbytes += extent.nbytes;
    hole_nbytes += extent.source == &zero_source() ? extent.nbytes : 0;
  }
  return is_mostly_holes(nbytes, hole_nbytes);
}

void plan_stored(const ByteColumn& column, std::uint64_t record, ByteRange range, Plan& plan) {
  std::vector<Extent>& extents = scratch_extents();
  column.locate(record, extents);
  Guard guard = column.guard(record);
  if (extents.size() == 1 && range.end > extents[0].nbytes) {
    // A run: the records that follow lie right behind.
    const std::uint64_t item_nbytes = extents[0].nbytes;
    guard.first += range.begin / item_nbytes;
    guard.count = (range.end - 1) / item_nbytes - range.begin / item_nbytes + 1;
    plan.add_extent(*extents[0].source, extents[0].offset + range.begin, range.nbytes(), guard);
    return;
  }
  std::uint64_t begin = 0;
  for (const Extent& extent : extents) {
    const std::uint64_t from = std::max(begin, range.begin);
    const std::uint64_t to = std::min(begin + extent.nbytes, range.end);
    if (from < to && extent.source == &zero_source()) {
      plan.add_fill({&kHole, 1}, 0, to - from);
    } else if (from < to) {
      plan.add_extent(*extent.source, extent.offset + (from - begin), to - from, guard);
    }
    begin += extent.nbytes;
  }
}

void read_stored(const ByteColumn& column, std::uint64_t record, std::uint64_t offset,
                 std::span<std::byte> out) {
  std::vector<Extent>& extents = scratch_extents();
  column.locate(record, extents);
  for (const Extent& extent : extents) {
    if (out.empty()) {
      return;
    }
    if (offset >= extent.nbytes) {
      offset -= extent.nbytes;
      continue;
    }
    const std::uint64_t n = std::min<std::uint64_t>(out.size(), extent.nbytes - offset);
    extent.source->read_at(extent.offset + offset, out.first(n));
    out = out.subspan(n);
    offset = 0;
  }
  if (!out.empty()) {
    const std::string file = extents.empty() ? "record" : extents[0].source->name();
    throw file_error(
        ErrorKind::kCorrupt, file,
        fmt::format("record {} is {} bytes shorter than its header says", record, out.size()));
  }
}

void read_item(const Column& column, std::uint64_t record, std::span<std::byte> out,
               StrictReader& reader) {
  if (column.decoded(record)) {
    reader.decode([&](DecodeContext& context) { column.decode(record, out, context); });
  } else {
    reader.read([&](ByteRange range, Plan& plan) { column.plan(record, range, plan); }, 0, out);
  }
}

std::vector<std::byte> read_head(const ByteColumn& column, std::uint64_t record,
                                 std::size_t nbytes) {
  if (column.damage(record) != nullptr) {
    return {};
  }
  try {
    std::vector<std::byte> head(std::min<std::uint64_t>(nbytes, stored_nbytes(column, record)));
    read_stored(column, record, 0, head);
    return head;
  } catch (const Error&) {
    return {};
  }
}

std::string record_name(const RecordTable& table, std::uint64_t record) {
  switch (table.key_kind()) {
    case KeyKind::kNone:
      break;
    case KeyKind::kInteger:
      return fmt::format("record {} (key {})", record, table.int_key(record));
    case KeyKind::kText:
      return record_name(record, table.text_key(record));
  }
  return fmt::format("record {}", record);
}

}  // namespace npyfs
