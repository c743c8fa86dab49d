// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/selected_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "formats/bytes/chunk_source.h"

namespace npyfs {

namespace {

Shape with_rows(Shape shape, std::uint64_t rows) {
  shape[0] = rows;
  return shape;
}

// Bytes of one row along axis 0.
std::uint64_t row_nbytes_of(const Array& array) {
  const Shape row(array.shape().begin() + 1, array.shape().end());
  return *element_count(row) * array.dtype().itemsize;
}

// In Fortran order the rows are the innermost axis: blocks of all rows, each of one element.
class SelectedRows : public Array {
 public:
  SelectedRows(ArrayPtr base, const RecordOrder& order)
      : Array(base->dtype(), with_rows(base->shape(), order.size())),
        base_(std::move(base)),
        order_(order),
        item_nbytes_(base_->fortran_order() ? dtype().itemsize : row_nbytes_of(*base_)),
        base_block_nbytes_(base_->fortran_order() ? base_->shape()[0] * item_nbytes_
                                                  : base_->nbytes()),
        block_nbytes_(order_.size() * item_nbytes_) {}

  bool fortran_order() const override { return base_->fortran_order(); }
  std::string storage() const override { return base_->storage(); }

  void plan(ByteRange range, Plan& plan) const override {
    while (!range.empty() && !plan.full()) {
      const std::uint64_t block = range.begin / block_nbytes_;
      const std::uint64_t in_block = range.begin % block_nbytes_;
      const std::uint64_t place = in_block / item_nbytes_;
      const std::uint64_t within = in_block % item_nbytes_;
      const std::uint64_t nbytes =
          std::min(range.nbytes(), order_.run(place) * item_nbytes_ - within);
      const std::uint64_t from = block * base_block_nbytes_ + order_[place] * item_nbytes_ + within;
      base_->plan({from, from + nbytes}, plan);
      range.begin += nbytes;
    }
  }

 private:
  ArrayPtr base_;
  RecordOrder order_;
  std::uint64_t item_nbytes_;
  std::uint64_t base_block_nbytes_;
  std::uint64_t block_nbytes_;
};

class SelectedText : public Array {
 public:
  SelectedText(ArrayPtr base, const RecordOrder& order, std::uint64_t code_points)
      : Array(DType::simple(fmt::format("<U{}", code_points)), {order.size()}),
        base_(std::move(base)),
        order_(order) {}

  std::string storage() const override { return base_->storage(); }

  void plan(ByteRange range, Plan& plan) const override {
    const std::uint64_t item_nbytes = dtype().itemsize;
    while (!range.empty() && !plan.full()) {
      const std::uint64_t place = range.begin / item_nbytes;
      const std::uint64_t within = range.begin % item_nbytes;
      const std::uint64_t nbytes = std::min(range.nbytes(), item_nbytes - within);
      const std::uint64_t from = order_[place] * base_->dtype().itemsize + within;
      base_->plan({from, from + nbytes}, plan);
      range.begin += nbytes;
    }
  }

 private:
  ArrayPtr base_;
  RecordOrder order_;
};

class SelectedRagged : public Array {
 public:
  SelectedRagged(ArrayPtr base, RaggedOrderPtr order)
      : Array(base->dtype(), with_rows(base->shape(), order->begin(order->records().size()))),
        base_(std::move(base)),
        order_(std::move(order)),
        row_nbytes_(row_nbytes_of(*base_)) {}

  std::string storage() const override { return base_->storage(); }

  void plan(ByteRange range, Plan& plan) const override {
    if (range.empty()) {
      return;
    }
    std::uint64_t place = order_->find(range.begin / row_nbytes_);
    while (!range.empty() && !plan.full()) {
      const std::uint64_t run = order_->run(place);
      const std::uint64_t begin = order_->begin(place) * row_nbytes_;
      const std::uint64_t end = order_->begin(place + run) * row_nbytes_;
      const std::uint64_t to = std::min(range.end, end);
      const std::uint64_t from = order_->source_begin(place) * row_nbytes_ + (range.begin - begin);
      if (to > range.begin) {
        base_->plan({from, from + (to - range.begin)}, plan);
      }
      range.begin = std::max(range.begin, to);
      place += run;
    }
  }

 private:
  ArrayPtr base_;
  RaggedOrderPtr order_;
  std::uint64_t row_nbytes_;
};

class PaddedRagged : public Array {
 public:
  PaddedRagged(ArrayPtr base, RaggedOrderPtr order, std::vector<std::byte> pad_value)
      : Array(base->dtype(), shape_of(*base, *order)),
        base_(std::move(base)),
        order_(std::move(order)),
        pad_value_(std::move(pad_value)),
        row_nbytes_(row_nbytes_of(*base_)),
        slot_nbytes_(shape()[1] * row_nbytes_) {}

  std::string storage() const override { return base_->storage(); }

  void plan(ByteRange range, Plan& plan) const override {
    while (!range.empty() && !plan.full()) {
      const std::uint64_t place = range.begin / slot_nbytes_;
      const std::uint64_t within = range.begin % slot_nbytes_;
      const std::uint64_t item_nbytes = order_->rows(place) * row_nbytes_;
      const bool in_item = within < item_nbytes;
      const std::uint64_t nbytes =
          std::min(range.nbytes(), (in_item ? item_nbytes : slot_nbytes_) - within);
      if (in_item) {
        const std::uint64_t from = order_->source_begin(place) * row_nbytes_ + within;
        base_->plan({from, from + nbytes}, plan);
      } else {
        plan.add_fill(pad_value_, within % pad_value_.size(), nbytes);
      }
      range.begin += nbytes;
    }
  }

 private:
  static Shape shape_of(const Array& base, const RaggedOrder& order) {
    Shape shape = base.shape();
    shape[0] = order.most_rows();
    shape.insert(shape.begin(), order.records().size());
    return shape;
  }

  ArrayPtr base_;
  RaggedOrderPtr order_;
  std::vector<std::byte> pad_value_;
  std::uint64_t row_nbytes_;
  std::uint64_t slot_nbytes_;
};

// Numbers about each record, made a block at a time.
class RaggedNumbers : public Array, public ChunkSource {
 public:
  using Number = std::uint64_t (*)(const RaggedOrder& order, std::uint64_t place);

  RaggedNumbers(RaggedOrderPtr order, std::uint64_t count, Number number)
      : Array(DType::simple("<i8"), {count}), order_(std::move(order)), number_(number) {}

  std::string storage() const override { return "computed"; }

  void plan(ByteRange range, Plan& plan) const override {
    while (!range.empty() && !plan.full()) {
      const std::uint64_t chunk = range.begin / kChunkNbytes;
      const std::uint64_t to = std::min(range.end, (chunk + 1) * kChunkNbytes);
      plan.add_chunk(*this, chunk, range.begin - chunk * kChunkNbytes, to - range.begin);
      range.begin = to;
    }
  }

  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    return std::min(nbytes() - chunk * kChunkNbytes, kChunkNbytes);
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const std::uint64_t first = chunk * kChunkNbytes / sizeof(std::int64_t);
    for (std::uint64_t i = 0; i < out.size() / sizeof(std::int64_t); ++i) {
      const auto value = static_cast<std::int64_t>(number_(*order_, first + i));
      std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
    }
  }

 private:
  static constexpr std::uint64_t kChunkNbytes = std::uint64_t{64} << 10;

  RaggedOrderPtr order_;
  Number number_;
};

}  // namespace

RaggedOrder::RaggedOrder(std::shared_ptr<const std::vector<std::int64_t>> offsets,
                         const RecordOrder& order)
    : offsets_(std::move(offsets)), order_(order) {
  if (!order_.is_shuffled()) {
    return;
  }
  begins_.reserve(order_.size() + 1);
  std::uint64_t begin = 0;
  for (std::uint64_t place = 0; place < order_.size(); ++place) {
    begins_.push_back(begin);
    const std::uint64_t record = order_[place];
    begin += static_cast<std::uint64_t>((*offsets_)[record + 1] - (*offsets_)[record]);
  }
  begins_.push_back(begin);
}

std::uint64_t RaggedOrder::begin(std::uint64_t place) const {
  if (order_.is_shuffled()) {
    return begins_[place];
  }
  // A record behind the last is where the last ends; of an empty part nothing is left.
  const std::uint64_t first = order_.size() > 0 ? order_[0] : 0;
  return static_cast<std::uint64_t>((*offsets_)[first + place] - (*offsets_)[first]);
}

std::uint64_t RaggedOrder::source_begin(std::uint64_t place) const {
  return static_cast<std::uint64_t>((*offsets_)[order_[place]]);
}

std::uint64_t RaggedOrder::find(std::uint64_t row) const {
  // The last place that begins at or before the row: records without rows come before it.
  std::uint64_t low = 0;
  std::uint64_t high = order_.size();
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (begin(middle) <= row ? low : high) = middle;
  }
  return low;
}

std::uint64_t RaggedOrder::most_rows() const {
  std::uint64_t most = 0;
  for (std::uint64_t place = 0; place < order_.size(); ++place) {
    most = std::max(most, rows(place));
  }
  return most;
}

ArrayPtr select_array_rows(ArrayPtr array, const RecordOrder& order) {
  return std::make_shared<SelectedRows>(std::move(array), order);
}

ArrayPtr select_text_rows(ArrayPtr array, const RecordOrder& order, std::uint64_t code_points) {
  return std::make_shared<SelectedText>(std::move(array), order, code_points);
}

ArrayPtr select_ragged(ArrayPtr array, RaggedOrderPtr order) {
  return std::make_shared<SelectedRagged>(std::move(array), std::move(order));
}

ArrayPtr ragged_offsets(RaggedOrderPtr order) {
  const std::uint64_t count = order->records().size() + 1;
  return std::make_shared<RaggedNumbers>(
      std::move(order), count,
      [](const RaggedOrder& ragged, std::uint64_t place) { return ragged.begin(place); });
}

ArrayPtr pad_ragged(ArrayPtr array, RaggedOrderPtr order, std::vector<std::byte> pad_value) {
  return std::make_shared<PaddedRagged>(std::move(array), std::move(order), std::move(pad_value));
}

ArrayPtr ragged_lengths(RaggedOrderPtr order) {
  const std::uint64_t count = order->records().size();
  return std::make_shared<RaggedNumbers>(
      std::move(order), count,
      [](const RaggedOrder& ragged, std::uint64_t place) { return ragged.rows(place); });
}

}  // namespace npyfs
