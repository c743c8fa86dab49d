// SPDX-License-Identifier: Apache-2.0
//
// Reading and planning parts of what a ByteColumn locates.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "formats/format.h"

namespace npyfs {

// Size of the record's stored bytes. 0 where it lacks the field. Not for a damaged record.
std::uint64_t stored_nbytes(const ByteColumn& column, std::uint64_t record);

// Appends `range` of the record's stored bytes under the column's guard, and on into the records
// that follow as far as column.run(record) reaches. Not for a damaged record.
void plan_stored(const ByteColumn& column, std::uint64_t record, ByteRange range, Plan& plan);

// Fills `out` with the stored bytes from `offset` on. Verifies nothing. Throws kCorrupt where the
// record is shorter.
void read_stored(const ByteColumn& column, std::uint64_t record, std::uint64_t offset,
                 std::span<std::byte> out);

// The first bytes of the record's stored payload, at most `nbytes`; fewer where it is shorter, none
// where it is absent, damaged or unreadable.
std::vector<std::byte> read_head(const ByteColumn& column, std::uint64_t record,
                                 std::size_t nbytes);

// A checksum over bytes in pieces: steps from 0, then the value as it is stored.
std::uint32_t checksum_step(Checksum::Kind kind, std::span<const std::byte> bytes,
                            std::uint32_t before);
std::uint32_t checksum_value(Checksum::Kind kind, std::uint32_t crc);

// Reads the payload whole, in a fixed buffer, and compares. Throws what reading throws.
bool matches(const Checksum& checksum);

// "record 7" or, with keys, "record 7 (utt-3)": for messages.
std::string record_name(const RecordTable& table, std::uint64_t record);

}  // namespace npyfs
