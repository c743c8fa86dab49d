// SPDX-License-Identifier: Apache-2.0
//
// What the records of a TFRecord file look like to the floors above: payloads as stored bytes,
// features as items.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/extent_column.h"
#include "formats/damage_list.h"
#include "formats/record_table.h"
#include "formats/tfrecord/feature_rows.h"

namespace npyfs {

// What the table and all its columns share. Immutable once the table is made.
struct Records : Checksums {
  SourcePtr source;
  ExtentColumn payloads;
  // By record. A payload that parses as no Example is damaged for its fields, not as stored bytes.
  DamageList damage;
  // The last record, where the file ends within it; its size is known from its length field.
  std::optional<std::uint64_t> cut_record;
  std::optional<Damage> cut;

  std::uint64_t size() const { return payloads.size(); }
  // Not to be asked for the one that is cut.
  std::optional<Checksum> checksum(std::uint64_t record) const override;
  std::string name_of(std::uint64_t record) const override;
  Guard guard(std::uint64_t record) const { return {this, record, 1}; }

  void write(PageWriter& page) const;
  // Those of `source`. Throws kCorrupt where the page holds none.
  static std::shared_ptr<Records> read(PageReader& page, SourcePtr source);
};

using RecordsPtr = std::shared_ptr<const Records>;

// Each record's payload as it is stored.
std::shared_ptr<const ByteColumn> make_payload_column(RecordsPtr records);

// The array field of one feature. `name` is the feature's.
Field make_feature_field(const std::string& name, RecordsPtr records,
                         std::shared_ptr<const FeatureRows> rows);

// The array field of one feature list of SequenceExamples: its steps one after another.
Field make_feature_list_field(const std::string& name, RecordsPtr records,
                              std::shared_ptr<const FeatureRows> rows);

}  // namespace npyfs
