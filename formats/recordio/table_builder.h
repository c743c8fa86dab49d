// SPDX-License-Identifier: Apache-2.0
//
// Framed records become a table: plain payloads, or images with labels and ids.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/opening.h"
#include "formats/record_table.h"
#include "formats/recordio/columns.h"
#include "formats/recordio/framing.h"
#include "formats/recordio/idx_file.h"
#include "formats/recordio/image_record.h"

namespace npyfs {

// What a file is found to hold.
struct RecordioIndex {
  KeyKind key_kind = KeyKind::kNone;
  std::shared_ptr<DamageList> damage;
  std::shared_ptr<PayloadColumn> payloads;
  std::shared_ptr<ValueColumn> labels;  // null: the records are no ImageRecords
  std::shared_ptr<ValueColumn> ids;     // as labels
  std::shared_ptr<KeyColumn> keys;

  // Nothing found yet of `source`.
  static RecordioIndex make(const SourcePtr& source);
  void write(PageWriter& page) const;
  // Throws kCorrupt where the page holds none.
  static RecordioIndex read(PageReader& page, const SourcePtr& source);
};

// `sources`: the file and, if there is one, its index.
std::shared_ptr<const RecordTable> make_recordio_table(const RecordioIndex& index,
                                                       std::vector<SourcePtr> sources);

// Takes the records in order, then gives what it found. Whether they are ImageRecords is decided by
// the first that tells; those before it are held back until then.
class TableBuilder {
 public:
  // `idx` is null without an index, else it and its source must live until finish().
  TableBuilder(SourcePtr source, SourcePtr idx_source, const IdxFile* idx, RecordFramer& framer,
               OpenContext& context);

  // `lines`: the index lines that name the record, one row each; without an index, ignored.
  void add(const FramedRecord& record, std::span<const IdxEntry> lines);
  void add_damaged(const Damage& damage, std::span<const IdxEntry> lines);
  RecordioIndex finish();

 private:
  enum class Mode { kUndecided, kPlain, kImages };
  struct Held {
    FramedRecord record;
    std::optional<Damage> damage;
    std::span<const IdxEntry> lines;
  };

  void decide(Mode mode);
  void append(const FramedRecord& record, std::span<const IdxEntry> lines);
  void append_image(const FramedRecord& record, std::span<const IdxEntry> lines);
  void append_damaged(const Damage& damage, std::span<const IdxEntry> lines);
  void append_keys(std::span<const IdxEntry> lines);
  void leave_out(const FramedRecord& record, std::uint64_t copies);
  std::uint64_t copies(std::span<const IdxEntry> lines) const {
    return idx_ == nullptr ? 1 : lines.size();
  }

  SourcePtr source_;
  SourcePtr idx_source_;
  const IdxFile* idx_;
  RecordFramer& framer_;
  OpenContext& context_;

  Mode mode_ = Mode::kUndecided;
  bool demanded_ = false;  // by --decode x=imagerecord
  std::vector<Held> held_;

  RecordioIndex found_;
  ImageHeader header_;

  std::uint64_t left_out_ = 0;
  std::uint64_t first_left_out_ = 0;  // offset of its payload
};

}  // namespace npyfs
