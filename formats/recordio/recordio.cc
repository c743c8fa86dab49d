// SPDX-License-Identifier: Apache-2.0

#include "formats/recordio/recordio.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/bytes/endian.h"
#include "formats/kept_page.h"
#include "formats/recordio/framing.h"
#include "formats/recordio/idx_file.h"
#include "formats/recordio/table_builder.h"

namespace npyfs {

namespace {

Error damage_error(const ByteSource& source, const FramedRecord::Fault& fault) {
  if (fault.too_many_parts) {
    // Not kTooLarge: readers get EIO, as of any damage.
    return {
        ErrorKind::kUnsupported,
        corrupt_at(source.name(), fault.offset, fault.text + "; the record is not shown").what()};
  }
  return corrupt_at(source.name(), fault.offset, fault.text + "; the file is damaged or cut short");
}

Damage damage_of(const ByteSource& source, const FramedRecord& record) {
  const bool whole = record.fault->too_many_parts;
  return {damage_error(source, *record.fault),
          whole ? std::optional(record.nbytes) : record.claimed_nbytes};
}

// Without an index: every record from the beginning on. Where one is damaged the next cannot be
// found, as a length is all that leads there.
RecordioIndex scan_all(const SourcePtr& source, OpenContext& context) {
  RecordFramer framer(*source, {});
  TableBuilder builder(source, nullptr, nullptr, framer, context);
  FramedRecord record;
  std::uint64_t records = 0;
  for (std::uint64_t offset = 0; offset < source->nbytes(); offset = record.end) {
    framer.frame(offset, record);
    if (record.fault && !record.fault->too_many_parts) {
      if (!context.permissive || records == 0) {
        throw damage_error(*source, *record.fault);
      }
      context.warn(fmt::format("{}; only the {} records before byte {} are shown",
                               damage_error(*source, *record.fault).what(), records, offset));
      break;
    }
    if (record.fault) {
      builder.add_damaged(damage_of(*source, record), {});
    } else {
      builder.add(record, {});
    }
    ++records;
  }
  return builder.finish();
}

// Finds the listed records, and judges whether the index belongs to the file.
class ListedScanner {
 public:
  ListedScanner(SourcePtr source, SourcePtr idx_source, OpenContext& context)
      : source_(std::move(source)),
        idx_source_(std::move(idx_source)),
        context_(context),
        idx_(read_idx(*idx_source_, context.permissive, context.warn)),
        offsets_(distinct_offsets(idx_)),
        framer_(*source_, offsets_),
        builder_(source_, idx_source_, &idx_, framer_, context) {}

  RecordioIndex run() {
    if (idx_.entries.empty() && source_->nbytes() > 0) {
      throw refusal(
          fmt::format("the number of records listed is 0, expected those of {} ({} bytes)",
                      printable(source_->name()), source_->nbytes()));
    }
    const std::span<const IdxEntry> entries = idx_.entries;
    for (std::size_t begin = 0; begin < entries.size();) {
      std::size_t end = begin + 1;
      while (end < entries.size() && entries[end].offset == entries[begin].offset) {
        ++end;
      }
      open_record(entries.subspan(begin, end - begin));
      begin = end;
    }
    check_index_fits();
    check_tail();
    return builder_.finish();
  }

 private:
  static std::vector<std::uint64_t> distinct_offsets(const IdxFile& idx) {
    std::vector<std::uint64_t> offsets;
    offsets.reserve(idx.entries.size());
    for (const IdxEntry& entry : idx.entries) {
      if (offsets.empty() || offsets.back() != entry.offset) {
        offsets.push_back(entry.offset);
      }
    }
    return offsets;
  }

  // `lines` name one offset.
  void open_record(std::span<const IdxEntry> lines) {
    const std::uint64_t offset = lines.front().offset;
    framer_.frame(offset, record_);
    if (record_.begins) {
      begun_ += 1;
      begun_behind_start_ += offset > 0 ? 1 : 0;
    }
    if (!record_.fault) {
      end_ = record_.end;
      builder_.add(record_, lines);
      return;
    }
    end_.reset();
    if (record_.begins) {
      end_ = record_.fault->too_many_parts ? std::optional(record_.end) : std::nullopt;
      builder_.add_damaged(damage_of(*source_, record_), lines);
      return;
    }
    mismatches_ += record_.fault->cut ? 0 : 1;
    const std::string text =
        fmt::format("line {} names byte {} of {}, where {}", lines.front().line, offset,
                    printable(source_->name()), record_.fault->text);
    if (first_problem_.empty()) {
      first_problem_ = text;
    }
    builder_.add_damaged({file_error(ErrorKind::kCorrupt, idx_source_->name(),
                                     text + "; the record is damaged, or the index another file's"),
                          std::nullopt},
                         lines);
  }

  // An index of another file hits the first record, which is at 0 in both, and hardly any other.
  void check_index_fits() const {
    const bool other_files = begun_behind_start_ == 0 && mismatches_ >= 2;
    if (!offsets_.empty() && (begun_ == 0 || other_files)) {
      throw refusal(fmt::format("{} ({} of {} places listed hold no record)", first_problem_,
                                offsets_.size() - begun_, offsets_.size()));
    }
  }

  // What follows the last record may be records that are not listed, but nothing else.
  void check_tail() {
    if (end_ && *end_ < source_->nbytes() && !framer_.begins_record(*end_)) {
      context_.warn(
          fmt::format("{} at byte {}: {} bytes follow the last record listed in {} and "
                      "are no record; they are not looked at",
                      printable(source_->name()), *end_, source_->nbytes() - *end_,
                      printable(idx_source_->name())));
    }
  }

  Error refusal(const std::string& text) const {
    return file_error(ErrorKind::kCorrupt, idx_source_->name(),
                      text +
                          "; write the index anew, or remove it to have the records found "
                          "without it");
  }

  SourcePtr source_;
  SourcePtr idx_source_;
  OpenContext& context_;
  IdxFile idx_;
  std::vector<std::uint64_t> offsets_;  // ascending
  RecordFramer framer_;
  TableBuilder builder_;
  FramedRecord record_;

  std::uint64_t begun_ = 0;               // offsets where a record begins
  std::uint64_t begun_behind_start_ = 0;  // of them, those above 0
  std::uint64_t mismatches_ = 0;          // offsets within the file where none does
  std::string first_problem_;
  std::optional<std::uint64_t> end_;  // of the last record, if that is whole
};

// The index beside the file, or null.
SourcePtr open_idx(const Location& location, const OpenContext& context) {
  const std::string path = idx_path(location.path);
  return path == location.path ? nullptr : context.open_beside(path);
}

bool recognises_recordio(const Location& location) {
  std::array<std::byte, 8> header;
  if (location.source == nullptr || location.source->nbytes() < header.size()) {
    return false;
  }
  location.source->read_at(0, header);
  return load_le<std::uint32_t>(header.data()) == kRecordioMagic &&
         load_le<std::uint32_t>(header.data() + 4) >> 29 <= 1;
}

std::shared_ptr<const RecordTable> open_recordio(const Location& location, OpenContext& context) {
  if (location.source == nullptr) {
    throw file_error(ErrorKind::kUnsupported, location.path, "not a file");
  }
  std::vector<SourcePtr> sources = {location.source};
  if (SourcePtr idx = open_idx(location, context)) {
    sources.push_back(std::move(idx));
  }
  const RecordioIndex index = find_or_scan(
      "recordio 1", sources, context,
      [&](OpenContext& own) {
        return sources.size() == 1 ? scan_all(sources[0], own)
                                   : ListedScanner(sources[0], sources[1], own).run();
      },
      [&](PageReader& page) { return RecordioIndex::read(page, sources[0]); });
  return make_recordio_table(index, sources);
}

}  // namespace

const Format kRecordio = {.name = "recordio",
                          .extensions = {"rec"},
                          .recognises = recognises_recordio,
                          .open = open_recordio,
                          .decode_kinds = {kImageRecord}};

}  // namespace npyfs
