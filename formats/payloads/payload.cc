// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "formats/bytes/npy_header.h"
#include "formats/extents.h"

namespace npyfs {

namespace {

struct Magic {
  std::string_view bytes;
  std::size_t offset;
  std::string_view extension;
  PayloadKind kind;
};

using std::string_view_literals::operator""sv;

constexpr Magic kMagics[] = {
    {"\x93NUMPY"sv, 0, "npy", PayloadKind::kNpy},
    {"\xff\xd8\xff"sv, 0, "jpg", PayloadKind::kImage},
    {"\x89PNG\r\n\x1a\n"sv, 0, "png", PayloadKind::kImage},
    {"WEBP"sv, 8, "webp", PayloadKind::kImage},
    {"WAVE"sv, 8, "wav", PayloadKind::kRaw},
    {"fLaC"sv, 0, "flac", PayloadKind::kRaw},
    {"OggS"sv, 0, "ogg", PayloadKind::kRaw},
};

const Magic* find_magic(std::span<const std::byte> head) {
  for (const Magic& magic : kMagics) {
    if (head.size() >= magic.offset + magic.bytes.size() &&
        std::memcmp(head.data() + magic.offset, magic.bytes.data(), magic.bytes.size()) == 0) {
      return &magic;
    }
  }
  return nullptr;
}

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

PayloadKind find_payload_kind(const Field& field, std::uint64_t record) {
  std::string extension = field.extension;
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == "jpeg") {
    extension = "jpg";
  }
  for (const Magic& magic : kMagics) {
    if (magic.extension == extension) {
      return magic.kind;
    }
  }
  if (!extension.empty()) {
    return PayloadKind::kRaw;
  }
  const Magic* magic = find_magic(read_head(*field.bytes, record, kMagicNbytes));
  return magic != nullptr ? magic->kind : PayloadKind::kRaw;
}

std::string_view extension_by_magic(std::span<const std::byte> head) {
  const Magic* magic = find_magic(head);
  return magic != nullptr ? magic->extension : "bin";
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
