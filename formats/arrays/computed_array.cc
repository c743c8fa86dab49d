// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/computed_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

class NumbersArray : public Array {
 public:
  explicit NumbersArray(std::shared_ptr<const std::vector<std::int64_t>> numbers)
      : Array(DType::simple("<i8"), {numbers->size()}), numbers_(std::move(numbers)) {}

  void plan(ByteRange range, Plan& plan) const override {
    plan.add_memory(std::as_bytes(std::span(*numbers_)).data() + range.begin, range.nbytes());
  }
  std::string storage() const override { return "computed"; }

 private:
  std::shared_ptr<const std::vector<std::int64_t>> numbers_;
};

// Rows of one size, made a block at a time.
class KeysArray : public Array, public ChunkSource {
 public:
  KeysArray(std::shared_ptr<const RecordTable> table, DType dtype)
      : Array(std::move(dtype), {table->size()}),
        table_(std::move(table)),
        chunk_rows_(std::max<std::uint64_t>(1, kChunkNbytes / this->dtype().itemsize)) {}

  void plan(ByteRange range, Plan& plan) const override {
    const std::uint64_t step = chunk_rows_ * dtype().itemsize;
    while (!range.empty()) {
      const std::uint64_t chunk = range.begin / step;
      const std::uint64_t to = std::min(range.end, (chunk + 1) * step);
      plan.add_chunk(*this, chunk, range.begin - chunk * step, to - range.begin);
      range.begin = to;
    }
  }
  std::string storage() const override { return "computed"; }

  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    const std::uint64_t first = chunk * chunk_rows_;
    return (std::min(first + chunk_rows_, table_->size()) - first) * dtype().itemsize;
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const std::size_t itemsize = dtype().itemsize;
    std::uint64_t record = chunk * chunk_rows_;
    for (; !out.empty(); out = out.subspan(itemsize), ++record) {
      if (table_->key_kind() == KeyKind::kInteger) {
        const std::int64_t key = table_->int_key(record);
        std::memcpy(out.data(), &key, sizeof key);
      } else {
        write_utf32(table_->text_key(record), out.first(itemsize));
      }
    }
  }

 private:
  static constexpr std::uint64_t kChunkNbytes = std::uint64_t{64} << 10;

  std::shared_ptr<const RecordTable> table_;
  std::uint64_t chunk_rows_;
};

}  // namespace

ArrayPtr numbers_array(std::shared_ptr<const std::vector<std::int64_t>> numbers) {
  return std::make_shared<NumbersArray>(std::move(numbers));
}

ArrayPtr keys_array(std::shared_ptr<const RecordTable> table) {
  switch (table->key_kind()) {
    case KeyKind::kNone:
      return nullptr;
    case KeyKind::kInteger:
      return std::make_shared<KeysArray>(std::move(table), DType::simple("<i8"));
    case KeyKind::kText:
      break;
  }
  // numpy has no <U0 in a file: an array of empty strings is <U1.
  std::uint64_t longest = 1;
  for (std::uint64_t record = 0; record < table->size(); ++record) {
    longest = std::max(longest, utf8_length(table->text_key(record)));
  }
  return std::make_shared<KeysArray>(std::move(table), DType::simple(fmt::format("<U{}", longest)));
}

}  // namespace npyfs
