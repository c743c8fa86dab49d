// SPDX-License-Identifier: Apache-2.0
//
// The parts of RecordIO: finds where the payload of one record lies. See FORMAT.md.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/extent_column.h"

namespace npyfs {

constexpr std::uint32_t kRecordioMagic = 0xCED7230A;

// Every read of a record looks at all its parts, and every one costs up to 32 bytes in the index.
// Chance makes a second part once in 16 GiB.
constexpr std::uint64_t kMaxParts = 65536;

// What was found at an offset. Used again for the next record, so that its memory is.
struct FramedRecord {
  // Why the record cannot be read; the fields from `runs` on hold only without one.
  struct Fault {
    std::uint64_t offset = 0;
    std::string text;  // "<what> is <found>, expected <rule>"
    // Nothing but the end of the file speaks against the record.
    bool cut = false;
    // The record is whole but has more than kMaxParts parts: `nbytes` and `end` hold.
    bool too_many_parts = false;
  };
  std::optional<Fault> fault;
  // A record does begin here, be it damaged or not.
  bool begins = false;
  // What a cut record claims to hold.
  std::optional<std::uint64_t> claimed_nbytes;

  // The payload: contiguous runs of the file in order, none empty unless the payload is.
  std::vector<ExtentColumn::Place> runs;
  std::uint64_t nbytes = 0;  // of the payload
  std::uint64_t end = 0;     // where the next record may begin
};

// One thread.
class RecordFramer {
 public:
  // `listed` are offsets where records are said to begin, ascending; empty without an index. A
  // record whose bytes reach over the true beginning of a listed one is damaged: no payload holds
  // a magic at a multiple of 4.
  RecordFramer(const ByteSource& source, std::span<const std::uint64_t> listed)
      : source_(source), headers_(source), probe_(source), listed_(listed) {}

  // Whether a record begins at `offset`.
  bool begins_record(std::uint64_t offset);

  // Frames the record at `offset`, which must not be below the last one's. Throws for I/O only.
  void frame(std::uint64_t offset, FramedRecord& out);

  // Fills `out` with payload bytes from `begin` on; they must be there.
  void read_payload(const FramedRecord& record, std::uint64_t begin, std::span<std::byte> out);

 private:
  struct Part {
    std::uint32_t flag = 0;
    std::uint64_t begin = 0;  // of the data
    std::uint64_t nbytes = 0;
    std::uint64_t end = 0;  // padding included, as far as the file has it
  };

  bool read_part(std::uint64_t offset, bool first, Part& part, FramedRecord& out);
  bool reaches_listed(std::uint64_t begin, std::uint64_t end, FramedRecord& out);

  const ByteSource& source_;
  WindowReader headers_;
  WindowReader probe_;  // for looks ahead, which must not move the window of headers_
  std::span<const std::uint64_t> listed_;
  std::size_t next_listed_ = 0;  // the first that is above the part looked at
};

}  // namespace npyfs
