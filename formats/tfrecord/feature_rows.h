// SPDX-License-Identifier: Apache-2.0
//
// The index of Example records: where every feature's values lie in every record, a few bytes each.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/index_page.h"
#include "formats/bytes/page_array.h"
#include "formats/tfrecord/example.h"

namespace npyfs {

// Numbers, nothing stored while all are equal, else 1, 2, 4 or 8 bytes each as the largest needs.
// Built by one thread, then immutable.
class PackedColumn {
 public:
  void append(std::uint64_t value);
  std::uint64_t size() const { return size_; }
  std::uint64_t operator[](std::uint64_t index) const;
  bool constant() const { return width_ == 0; }
  // The index of the first number not below `value`, in an ascending column.
  std::uint64_t lower_bound(std::uint64_t value) const;
  void shrink() { bytes_.shrink_to_fit(); }

  void write(PageWriter& page) const;
  // Throws kCorrupt where the page holds none.
  static PackedColumn read(PageReader& page);

 private:
  void store(std::uint64_t value);
  void widen(unsigned width);

  std::uint64_t size_ = 0;
  std::uint64_t first_ = 0;
  unsigned width_ = 0;
  PageArray<std::byte> bytes_;
};

// One feature (or feature list) in the records that have it. Built by one thread, then immutable.
class FeatureRows {
 public:
  struct Row {
    ValueKind kind = ValueKind::kNone;
    bool direct = false;
    std::uint64_t decoded_nbytes = 0;
    std::uint64_t steps = 0;
  };

  // `record` is larger than the last; `value` lies in the record's payload, from `payload_offset`.
  void append(std::uint64_t record, const FeatureValue& value, std::uint64_t payload_offset);
  void shrink();

  std::uint64_t size() const { return forms_.size(); }
  // The row of a record; nothing where the record lacks the feature.
  std::optional<std::uint64_t> find(std::uint64_t record) const;
  Row operator[](std::uint64_t row) const;
  // The row's slices, counted from the start of the record's payload. Where there is one only, it
  // is put into `single`.
  std::span<const ByteRange> slices(std::uint64_t row, ByteRange& single) const;

  // What holds for all rows.
  ValueKind kind() const { return kind_; }  // kNone: no row has a value
  bool single() const { return single_; }   // exactly one value in each
  // Decoded size of every step of a feature list, where that is one number.
  std::optional<std::uint64_t> step_nbytes() const;
  bool equal_nbytes() const { return decoded_nbytes_.constant() && steps_.constant(); }
  // The first record whose values are of another kind than those before.
  std::optional<std::uint64_t> clash() const { return clash_; }
  // The first record with a step of another size than those before.
  std::optional<std::uint64_t> uneven() const { return uneven_; }
  // Whether `value` would leave all that as it is.
  bool fits(const FeatureValue& value) const;

  void write(PageWriter& page) const;
  // Throws kCorrupt where the page holds none.
  static FeatureRows read(PageReader& page);

 private:
  void note(std::uint64_t record, const FeatureValue& value);

  PackedColumn records_;  // empty while row i is record i
  PackedColumn forms_;    // kind, and 8 where direct
  PackedColumn decoded_nbytes_;
  PackedColumn steps_;
  PackedColumn slice_counts_;
  PackedColumn slice_offsets_;  // where there are several slices: the first one's place in more_
  PackedColumn slice_nbytes_;   // 0 where direct: it is decoded_nbytes
  PageArray<ByteRange> more_;

  ValueKind kind_ = ValueKind::kNone;
  bool single_ = true;
  std::optional<std::uint64_t> step_nbytes_;
  std::optional<std::uint64_t> clash_;
  std::optional<std::uint64_t> uneven_;
};

// By name.
using FeatureMap = std::map<std::string, std::shared_ptr<const FeatureRows>, std::less<>>;
void write_features(const FeatureMap& features, PageWriter& page);
FeatureMap read_features(PageReader& page);

// All features of all records. Parse a record into it, then commit or discard it.
class FeatureIndex : public FeatureSink {
 public:
  explicit FeatureIndex(const std::string& source_name) : source_name_(source_name) {}

  // Of what has been parsed since the last commit or discard.
  bool empty() const { return touched_.empty(); }
  bool has_lists() const;
  // Whether it would change what is known of some feature: a new name, a first absence, another
  // size or kind. Then it is worth making sure that it is not damage that speaks.
  bool surprising() const;
  void commit(std::uint64_t record, std::uint64_t payload_offset);
  void discard();

  FeatureMap features() const { return finished(features_); }
  FeatureMap feature_lists() const { return finished(lists_); }

  void feature(std::string_view name, FeatureValue& value) override;
  void feature_list(std::string_view name, FeatureValue& value) override;

 private:
  struct Slot {
    std::shared_ptr<FeatureRows> rows = std::make_shared<FeatureRows>();
    FeatureValue pending;
    bool touched = false;
    bool is_list = false;
  };
  using Slots = std::map<std::string, Slot, std::less<>>;

  void take(Slots& slots, std::string_view name, FeatureValue& value, bool is_list);
  bool dense(const Slot& slot) const { return slot.rows->size() == committed_; }
  static bool has_value(const Slot& slot);
  static FeatureMap finished(const Slots& slots);

  std::string source_name_;
  Slots features_;
  Slots lists_;
  std::vector<Slot*> touched_;
  std::size_t names_nbytes_ = 0;  // of all slots
  std::uint64_t committed_ = 0;
  std::uint64_t dense_slots_ = 0;  // present in every committed record
};

}  // namespace npyfs
