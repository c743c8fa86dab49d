// SPDX-License-Identifier: Apache-2.0

#include "formats/recordio/framing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kPartHeaderNbytes = 8;  // magic, lrec
constexpr std::uint64_t kMagicNbytes = 4;
constexpr std::uint32_t kLengthMask = (1U << 29) - 1;
// Payloads are shorter than this, escaped magics included.
constexpr std::uint64_t kRecordLimitNbytes = 1U << 29;

enum PartFlag : std::uint32_t { kComplete = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

std::uint64_t align4(std::uint64_t offset) { return (offset + 3) & ~std::uint64_t{3}; }

// Appends a run; one that continues the last makes that longer. An empty one stands only first.
void append_run(std::vector<ExtentColumn::Place>& runs, std::uint64_t offset,
                std::uint64_t nbytes) {
  if (!runs.empty() && nbytes == 0) {
    return;
  }
  if (!runs.empty() && runs.back().offset + runs.back().nbytes == offset) {
    runs.back().nbytes += nbytes;
  } else {
    runs.push_back({offset, nbytes});
  }
}

// What is wrong with the 8 bytes of a part's header; empty where nothing is.
std::string header_fault(std::span<const std::byte> header, bool first) {
  const auto magic = load_le<std::uint32_t>(header.data());
  const std::uint32_t flag = load_le<std::uint32_t>(header.data() + 4) >> 29;
  if (magic != kRecordioMagic) {
    return fmt::format("the magic of a {} is {:#010x}, expected {:#010x}",
                       first ? "record" : "record's next part", magic, kRecordioMagic);
  }
  if (first && flag != kComplete && flag != kFirst) {
    return fmt::format("the part flag of a record is {}, expected 0 (complete) or 1 (first part)",
                       flag);
  }
  if (!first && flag != kMiddle && flag != kLast) {
    return fmt::format("the part flag is {}, expected 2 or 3 (the record goes on)", flag);
  }
  return {};
}

}  // namespace

bool RecordFramer::begins_record(std::uint64_t offset) {
  return offset % 4 == 0 && lies_within(offset, kPartHeaderNbytes, source_.nbytes()) &&
         header_fault(probe_.at(offset, kPartHeaderNbytes), true).empty();
}

void RecordFramer::frame(std::uint64_t offset, FramedRecord& out) {
  out.fault.reset();
  out.begins = false;
  out.claimed_nbytes.reset();
  out.runs.clear();
  Part part;
  if (!read_part(offset, true, part, out)) {
    return;
  }
  append_run(out.runs, part.begin, part.nbytes);
  out.nbytes = part.nbytes;
  std::uint64_t parts = 1;
  while (part.flag == kFirst || part.flag == kMiddle) {
    // The magic of the next part stands for the one the writer took out of the payload.
    const std::uint64_t magic = part.end;
    if (!read_part(magic, false, part, out)) {
      return;
    }
    if (++parts <= kMaxParts) {
      append_run(out.runs, magic, kMagicNbytes);
      append_run(out.runs, part.begin, part.nbytes);
    }
    out.nbytes += kMagicNbytes + part.nbytes;
    if (out.nbytes >= kRecordLimitNbytes) {
      out.fault = {offset,
                   fmt::format("the length of the record is {} or more, expected less than {}",
                               out.nbytes, kRecordLimitNbytes)};
      return;
    }
  }
  if (out.runs.front().nbytes == 0 && out.runs.size() > 1) {
    out.runs.erase(out.runs.begin());
  }
  out.end = part.end;
  if (parts > kMaxParts) {
    out.fault = {.offset = offset,
                 .text = fmt::format("the number of parts of the record is {}, expected at most {}",
                                     parts, kMaxParts),
                 .too_many_parts = true};
  }
}

// Reads the header of a part and checks that its data is there. False: out.fault is set.
bool RecordFramer::read_part(std::uint64_t offset, bool first, Part& part, FramedRecord& out) {
  if (offset % 4 != 0 && offset < source_.nbytes()) {
    out.fault = {offset,
                 fmt::format("the offset of a part is {}, expected a multiple of 4", offset)};
    return false;
  }
  const std::uint64_t left = offset < source_.nbytes() ? source_.nbytes() - offset : 0;
  if (left < kPartHeaderNbytes) {
    out.fault = {offset,
                 fmt::format("what is left of the file is {} bytes, expected {} or more (the "
                             "header of a {})",
                             left, kPartHeaderNbytes, first ? "record" : "record's next part"),
                 true};
    return false;
  }
  const auto header = headers_.at(offset, kPartHeaderNbytes);
  const std::string why = header_fault(header, first);
  if (!why.empty()) {
    out.fault = {offset, why};
    return false;
  }
  out.begins = true;
  const auto lrec = load_le<std::uint32_t>(header.data() + kMagicNbytes);
  part.flag = lrec >> 29;
  part.nbytes = lrec & kLengthMask;
  part.begin = offset + kPartHeaderNbytes;
  // Padding missing at the very end is not missed: all of the payload is there.
  part.end = std::min(align4(part.begin + part.nbytes), source_.nbytes());
  if (reaches_listed(offset, std::min(part.begin + part.nbytes, source_.nbytes()), out)) {
    return false;
  }
  if (part.nbytes > source_.nbytes() - part.begin) {
    out.fault = {offset + kMagicNbytes,
                 fmt::format("the length of a part is {}, expected {} (what is left of the file) "
                             "or less",
                             part.nbytes, source_.nbytes() - part.begin),
                 true};
    if (part.flag == kComplete && part.nbytes <= source_.nbytes()) {
      out.claimed_nbytes = part.nbytes;
    }
    return false;
  }
  return true;
}

// Whether a listed record truly begins within the part [begin, end).
bool RecordFramer::reaches_listed(std::uint64_t begin, std::uint64_t end, FramedRecord& out) {
  while (next_listed_ < listed_.size() && listed_[next_listed_] <= begin) {
    ++next_listed_;
  }
  for (std::size_t i = next_listed_; i < listed_.size() && listed_[i] < end; ++i) {
    if (begins_record(listed_[i])) {
      out.fault = {
          begin + kMagicNbytes,
          fmt::format("the end of a part is {}, expected {} (where the index has a record) "
                      "or less",
                      end, listed_[i])};
      return true;
    }
  }
  return false;
}

void RecordFramer::read_payload(const FramedRecord& record, std::uint64_t begin,
                                std::span<std::byte> out) {
  for (const ExtentColumn::Place& run : record.runs) {
    if (out.empty()) {
      return;
    }
    if (begin >= run.nbytes) {
      begin -= run.nbytes;
      continue;
    }
    const auto step =
        static_cast<std::size_t>(std::min<std::uint64_t>(run.nbytes - begin, out.size()));
    std::memcpy(out.data(), headers_.at(run.offset + begin, step).data(), step);
    out = out.subspan(step);
    begin = 0;
  }
}

}  // namespace npyfs
