// SPDX-License-Identifier: Apache-2.0
//
// What a RecordIO file is known to hold: payloads that stay in the file, labels and ids that are
// small enough to keep, and the keys of an index.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/bytes/extent_column.h"
#include "formats/bytes/page_array.h"
#include "formats/bytes/string_list.h"
#include "formats/column.h"
#include "formats/damage_list.h"

namespace npyfs {

// All are built by one thread, then immutable. `damage` is filled beside them. `copies` rows are
// appended at once where several keys name one record: what they share is kept once, so that a
// small index cannot ask for much memory.

// Payloads, or what is left of them behind a header. 12 bytes a record unless all strides are
// equal, and 16 for every run of those whose payload is not contiguous.
class PayloadColumn : public ByteColumn {
 public:
  PayloadColumn(SourcePtr source, std::shared_ptr<const DamageList> damage)
      : source_(std::move(source)), damage_(std::move(damage)) {}

  // `runs` without its first `skip` bytes, which must be there.
  void append(std::span<const ExtentColumn::Place> runs, std::uint64_t skip, std::uint64_t copies);
  void append_damaged(std::uint64_t copies);
  void shrink();
  void write(PageWriter& page) const;
  // Throws kCorrupt where the page holds none, as all below.
  void read(PageReader& page);

  std::uint64_t size() const override { return places_.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override;
  const Damage* damage(std::uint64_t record) const override { return damage_->find(record); }
  std::optional<std::uint64_t> equal_nbytes() const override;

 private:
  SourcePtr source_;
  std::shared_ptr<const DamageList> damage_;
  ExtentColumn places_;  // first byte, and the size of all runs
  bool equal_ = true;    // all sizes

  // Records of several runs, ascending: scattered_[i] has runs_ from first_runs_[i] on.
  PageArray<std::uint64_t> scattered_;
  PageArray<std::uint64_t> first_runs_;
  PageArray<ExtentColumn::Place> runs_;
};

// A few numbers per record, in memory.
class ValueColumn : public Column {
 public:
  ValueColumn(DType dtype, std::shared_ptr<const DamageList> damage)
      : dtype_(std::move(dtype)), damage_(std::move(damage)) {}

  // The bytes of the record's values. `scalar`: the one value is an item of shape (), as long as
  // all are.
  void append(std::span<const std::byte> values, bool scalar, std::uint64_t copies);
  void append_damaged(std::uint64_t copies);
  void shrink();
  void write(PageWriter& page) const;
  void read(PageReader& page);

  std::uint64_t size() const override { return size_; }
  void inspect(std::uint64_t record, Item& item) const override;
  std::optional<Item> uniform() const override;
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override;
  std::uint64_t run(std::uint64_t record) const override;

 private:
  std::uint64_t begin_of(std::uint64_t record) const {
    return dense_ ? record * width_ : begins_[record];
  }
  std::uint64_t width_of(std::uint64_t record) const { return dense_ ? width_ : widths_[record]; }
  Shape shape_of(std::uint64_t record) const;
  void spread();

  DType dtype_;
  std::shared_ptr<const DamageList> damage_;
  PageArray<std::byte> values_;
  std::uint64_t size_ = 0;
  // The form of the first undamaged record.
  std::uint64_t width_ = 0;
  bool scalar_ = false;
  bool first_seen_ = false;
  bool alike_ = true;  // all undamaged records have this width, and are scalars or not

  bool dense_ = true;  // values lie at record * width_; else where these two say, in values
  PageArray<std::uint64_t> begins_;
  PageArray<std::uint32_t> widths_;
};

// Nothing per record while integers count up by one; else 8 bytes, and the text where they are
// text.
class KeyColumn {
 public:
  void append(std::int64_t key);
  void append(std::string_view key);
  void shrink();
  void write(PageWriter& page) const;
  void read(PageReader& page);

  std::uint64_t size() const { return size_; }
  std::int64_t integer(std::uint64_t record) const {
    return integers_.empty() ? counted(record) : integers_[record];
  }
  std::string_view text(std::uint64_t record) const { return texts_[record]; }

 private:
  std::int64_t counted(std::uint64_t record) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(first_) + record);
  }

  std::uint64_t size_ = 0;
  std::int64_t first_ = 0;
  PageArray<std::int64_t> integers_;
  StringList texts_;
};

}  // namespace npyfs
