// SPDX-License-Identifier: Apache-2.0
//
// Reading and planning parts of what a ByteColumn locates.

#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
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

// The checksum of the record's payload, given as `payload`, in the form in which it is stored.
std::uint32_t checksum_of(const Checksum& checksum, std::span<const std::byte> payload);

// The same, reading the payload through a fixed buffer. A payload may be larger than anybody has
// time for: `proceed` is called before each part and may throw.
std::uint32_t read_checksum_of(const Checksum& checksum,
                               const std::function<void()>& proceed = nullptr);

// Whether that is what is stored. Throws what reading throws.
bool matches(const Checksum& checksum);

// Whether the record's stored bytes match their checksum; true where they have none that is to be
// verified. Reads the record whole. Not for a damaged record.
bool matches_checksum(const ByteColumn& column, std::uint64_t record);

// What is said of `what` ("record 7") of so many bytes that does not match, and the kCorrupt of
// one whose payload lies there.
std::string checksum_text(std::string_view what, std::uint64_t nbytes);
Error checksum_error(std::string_view what, const Extent& payload);

// "record 7" or, with keys, "record 7 (utt-3)": for messages.
std::string record_name(const RecordTable& table, std::uint64_t record);

}  // namespace npyfs
