// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/payload.h"

#include <fmt/format.h>

#include "formats/extents.h"

namespace npyfs {

namespace {

class RawColumn : public Column {
 public:
  explicit RawColumn(std::shared_ptr<const ByteColumn> bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_->size(); }
  std::uint64_t run(std::uint64_t record) const override { return bytes_->run(record); }

  std::optional<Item> uniform() const override {
    if (const auto nbytes = bytes_->equal_nbytes()) {
      Item item;
      item.dtype = DType::simple("|u1");
      item.shape = {*nbytes};
      return item;
    }
    return std::nullopt;
  }

  void inspect(std::uint64_t record, Item& item) const override {
    item.damage = bytes_->damage(record);
    if (item.damage != nullptr) {
      return;
    }
    thread_local std::vector<Extent> extents;
    item.present = bytes_->locate(record, extents);
    std::uint64_t nbytes = 0;
    for (const Extent& extent : extents) {
      nbytes += extent.nbytes;
    }
    item.dtype = dtype_;
    item.shape.assign(1, nbytes);
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    plan_stored(*bytes_, record, range, plan);
  }

 private:
  std::shared_ptr<const ByteColumn> bytes_;
  DType dtype_ = DType::simple("|u1");
};

class DeclaredColumn : public Column {
 public:
  DeclaredColumn(std::shared_ptr<const ByteColumn> bytes, const RecordTable& table, DType dtype,
                 std::optional<Shape> shape)
      : raw_(std::move(bytes)), table_(table), dtype_(std::move(dtype)), shape_(std::move(shape)) {
    if (shape_) {
      const auto elements = element_count(*shape_);
      const auto nbytes = elements ? checked_mul(*elements, dtype_.itemsize) : std::nullopt;
      if (!nbytes) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("--shape {}: more than 2^63 bytes", shape_text(*shape_)));
      }
      nbytes_ = *nbytes;
    }
  }

  std::uint64_t size() const override { return raw_.size(); }
  std::uint64_t run(std::uint64_t record) const override { return raw_.run(record); }

  std::optional<Item> uniform() const override {
    std::optional<Item> item = raw_.uniform();
    if (item && size() > 0) {
      declare(0, *item);
    }
    return item;
  }

  void inspect(std::uint64_t record, Item& item) const override {
    raw_.inspect(record, item);
    if (item.damage == nullptr && item.present) {
      declare(record, item);
    }
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    raw_.plan(record, range, plan);
  }

 private:
  // Turns uint8 [nbytes] into what was declared.
  void declare(std::uint64_t record, Item& item) const {
    const std::uint64_t found = item.shape[0];
    if (shape_ ? found != nbytes_ : found % dtype_.itemsize != 0) {
      const auto sources = table_.sources();
      throw file_error(
          ErrorKind::kCorrupt, sources.empty() ? "source" : sources.front()->name(),
          shape_ ? fmt::format("{} is {} bytes, expected {} for {} {}; correct --dtype and --shape",
                               record_name(table_, record), found, nbytes_, dtype_.text(),
                               shape_text(*shape_))
                 : fmt::format("{} is {} bytes, expected a multiple of {} for {}; correct --dtype",
                               record_name(table_, record), found, dtype_.itemsize, dtype_.text()));
    }
    item.dtype = dtype_;
    if (shape_) {
      item.shape = *shape_;
    } else {
      item.shape.assign(1, found / dtype_.itemsize);
    }
  }

  RawColumn raw_;
  const RecordTable& table_;
  DType dtype_;
  std::optional<Shape> shape_;
  std::uint64_t nbytes_ = 0;
};

}  // namespace

std::optional<std::uint64_t> first_payload(const Field& field, const Verifier& verifier) {
  constexpr std::uint64_t kMaxProbeNbytes = std::uint64_t{64} << 20;
  constexpr int kMaxFailing = 16;
  const ByteColumn& bytes = *field.bytes;
  std::optional<std::uint64_t> first;
  int failing = 0;
  for (std::uint64_t record = 0; record < bytes.size() && failing < kMaxFailing; ++record) {
    const std::uint64_t nbytes = bytes.damage(record) == nullptr ? stored_nbytes(bytes, record) : 0;
    if (nbytes == 0) {
      continue;
    }
    if (!field.extension.empty() || nbytes > kMaxProbeNbytes ||
        verifier.is_intact(bytes.guard(record))) {
      return record;
    }
    first = first.value_or(record);
    ++failing;
  }
  return first;
}

std::shared_ptr<const Column> make_raw_column(std::shared_ptr<const ByteColumn> bytes) {
  return std::make_shared<RawColumn>(std::move(bytes));
}

std::shared_ptr<const Column> make_declared_column(std::shared_ptr<const ByteColumn> bytes,
                                                   const RecordTable& table, DType dtype,
                                                   std::optional<Shape> shape) {
  return std::make_shared<DeclaredColumn>(std::move(bytes), table, std::move(dtype),
                                          std::move(shape));
}

}  // namespace npyfs
