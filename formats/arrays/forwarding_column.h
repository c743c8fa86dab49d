// SPDX-License-Identifier: Apache-2.0
//
// A column that shows another one, but for what its subclass says otherwise.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "formats/format.h"

namespace npyfs {

// Passes on all but converted(), which is of the subclass's own kind.
class ForwardingColumn : public Column {
 public:
  std::uint64_t size() const override { return base_->size(); }
  void inspect(std::uint64_t record, Item& item) const override {
    base_->inspect(base_record(record), item);
  }
  std::optional<Item> uniform() const override { return base_->uniform(); }
  bool decoded(std::uint64_t record) const override { return base_->decoded(base_record(record)); }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    base_->plan(base_record(record), range, plan);
  }
  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    base_->decode(base_record(record), out, context);
  }
  std::uint64_t run(std::uint64_t record) const override { return base_->run(base_record(record)); }
  std::shared_ptr<const Column> converted(const DType& dtype) const override = 0;
  bool time_series() const override { return base_->time_series(); }
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t known) const override {
    return base_->text_length(base_record(record), known);
  }
  std::optional<std::uint32_t> rate_hz() const override { return base_->rate_hz(); }
  std::string rate_clash() const override { return base_->rate_clash(); }

 protected:
  explicit ForwardingColumn(std::shared_ptr<const Column> base) : base_(std::move(base)) {}

  // What a record of this column is in base().
  virtual std::uint64_t base_record(std::uint64_t record) const { return record; }
  const Column& base() const { return *base_; }

 private:
  std::shared_ptr<const Column> base_;
};

}  // namespace npyfs
