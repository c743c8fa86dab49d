// SPDX-License-Identifier: Apache-2.0
//
// Reading and planning what columns locate.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/strict_reader.h"
#include "formats/record_table.h"

namespace npyfs {

// Size of the record's stored bytes. 0 where it lacks the field. Not for a damaged record.
std::uint64_t stored_nbytes(const ByteColumn& column, std::uint64_t record);

// Whether a record is almost all holes, so that decoding it would take memory its file does not
// justify.
bool is_mostly_holes(std::uint64_t nbytes, std::uint64_t hole_nbytes);
// The same for one record of a column. Not for a damaged record.
bool is_mostly_holes(const ByteColumn& column, std::uint64_t record);

// Appends `range` of the record's stored bytes under the column's guard, and on into the records
// that follow as far as column.run(record) reaches. Not for a damaged record.
void plan_stored(const ByteColumn& column, std::uint64_t record, ByteRange range, Plan& plan);

// Fills `out` with the stored bytes from `offset` on. Verifies nothing. Throws kCorrupt where the
// record is shorter.
void read_stored(const ByteColumn& column, std::uint64_t record, std::uint64_t offset,
                 std::span<std::byte> out);

// Fills `out` with all bytes of the record's item, which is present and undamaged: decoded, or read
// where they lie. Throws as StrictReader::read.
void read_item(const Column& column, std::uint64_t record, std::span<std::byte> out,
               StrictReader& reader);

// The first bytes of the record's stored payload, at most `nbytes`; fewer where it is shorter, none
// where it is absent, damaged or unreadable.
std::vector<std::byte> read_head(const ByteColumn& column, std::uint64_t record,
                                 std::size_t nbytes);

// "record 7" or, with keys, "record 7 (utt-3)": for messages.
std::string record_name(const RecordTable& table, std::uint64_t record);

}  // namespace npyfs
