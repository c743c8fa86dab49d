// SPDX-License-Identifier: Apache-2.0

#include "formats/extents.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

// Reused, so that planning a read allocates nothing.
std::vector<Extent>& scratch_extents() {
  thread_local std::vector<Extent> extents;
  extents.clear();
  return extents;
}

// A checksum over bytes in pieces: steps from 0, then the value as it is stored.
std::uint32_t step(Checksum::Kind kind, std::span<const std::byte> bytes, std::uint32_t before) {
  return kind == Checksum::Kind::kCrc32 ? crc32(bytes, before) : crc32c(bytes, before);
}

std::uint32_t to_stored(Checksum::Kind kind, std::uint32_t crc) {
  return kind == Checksum::Kind::kCrc32 ? crc : mask_crc32c(crc);
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
    if (from < to) {
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

std::uint32_t checksum_of(const Checksum& checksum, std::span<const std::byte> payload) {
  return to_stored(checksum.kind, step(checksum.kind, payload, 0));
}

std::uint32_t read_checksum_of(const Checksum& checksum, const std::function<void()>& proceed) {
  constexpr std::uint64_t kBufferNbytes = 1 << 20;
  std::vector<std::byte> buffer(std::min(checksum.payload.nbytes, kBufferNbytes));
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < checksum.payload.nbytes;) {
    if (proceed) {
      proceed();
    }
    const std::uint64_t n = std::min(kBufferNbytes, checksum.payload.nbytes - done);
    const std::span<std::byte> part(buffer.data(), n);
    checksum.payload.source->read_at(checksum.payload.offset + done, part);
    crc = step(checksum.kind, part, crc);
    done += n;
  }
  return to_stored(checksum.kind, crc);
}

bool matches(const Checksum& checksum) {
  std::byte stored[4];
  checksum.stored.source->read_at(checksum.stored.offset, stored);
  return read_checksum_of(checksum) == load_le<std::uint32_t>(stored);
}

bool matches_checksum(const ByteColumn& column, std::uint64_t record) {
  const Guard guard = column.guard(record);
  const auto checksum = guard.table != nullptr ? guard.table->checksum(guard.first) : std::nullopt;
  return !checksum || matches(*checksum);
}

std::string checksum_text(std::string_view what, std::uint64_t nbytes) {
  return fmt::format("{} is {} bytes and does not match its checksum; the file is damaged", what,
                     nbytes);
}

Error checksum_error(std::string_view what, const Extent& payload) {
  return corrupt_at(payload.source->name(), payload.offset, checksum_text(what, payload.nbytes));
}

std::string record_name(const RecordTable& table, std::uint64_t record) {
  switch (table.key_kind()) {
    case KeyKind::kNone:
      break;
    case KeyKind::kInteger:
      return fmt::format("record {} (key {})", record, table.int_key(record));
    case KeyKind::kText:
      return fmt::format("record {} (key {})", record, printable(table.text_key(record)));
  }
  return fmt::format("record {}", record);
}

}  // namespace npyfs
