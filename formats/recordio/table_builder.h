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

// Takes the records in order, then gives the table. Whether they are ImageRecords is decided by the
// first that tells; those before it are held back until then.
class TableBuilder {
 public:
  // `idx` is null without an index, else it and its source must live until finish().
  TableBuilder(SourcePtr source, SourcePtr idx_source, const IdxFile* idx, RecordFramer& framer,
               OpenContext& context);

  // `lines`: the index lines that name the record, one row each; without an index, ignored.
  void add(const FramedRecord& record, std::span<const IdxEntry> lines);
  void add_damaged(const Damage& damage, std::span<const IdxEntry> lines);
  std::shared_ptr<const RecordTable> finish();

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

  std::shared_ptr<DamageList> damage_ = std::make_shared<DamageList>();
  std::shared_ptr<PayloadColumn> payloads_;
  std::shared_ptr<ValueColumn> labels_;
  std::shared_ptr<ValueColumn> ids_;
  std::shared_ptr<KeyColumn> keys_ = std::make_shared<KeyColumn>();
  ImageHeader header_;

  std::uint64_t left_out_ = 0;
  std::uint64_t first_left_out_ = 0;  // offset of its payload
};

}  // namespace npyfs
