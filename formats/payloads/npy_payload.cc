// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/npy_header.h"
#include "formats/damage_list.h"
#include "formats/extents.h"
#include "formats/payloads/payload.h"

namespace npyfs {

namespace {

// What nearly all members of a data set have in common; only the row count differs.
struct Kind {
  DType dtype;
  Shape trailing;  // the shape without axis 0
  bool scalar = false;
  bool fortran_order = false;
  std::uint64_t header_nbytes = 0;
  std::uint64_t row_nbytes = 0;

  bool operator==(const Kind&) const = default;
};

// Whether items of the two kinds can stand in one array. It also bounds the number of kinds.
bool one_array(const Kind& a, const Kind& b) {
  return a.dtype == b.dtype && a.trailing == b.trailing && a.scalar == b.scalar;
}

// Headers are 128 bytes but for structured types and large ranks.
constexpr std::size_t kUsualHeaderNbytes = 128;

// Copies an array of Fortran order into C order, element by element. The rightmost index runs
// fastest in `out`.
void transpose(std::span<const std::byte> in, std::span<std::byte> out, const Shape& shape,
               std::uint64_t itemsize) {
  const std::size_t rank = shape.size();
  std::vector<std::uint64_t> stride(rank, itemsize);
  for (std::size_t axis = 1; axis < rank; ++axis) {
    stride[axis] = stride[axis - 1] * shape[axis - 1];
  }
  std::vector<std::uint64_t> index(rank, 0);
  std::uint64_t from = 0;
  for (std::uint64_t to = 0; to < out.size(); to += itemsize) {
    std::memcpy(out.data() + to, in.data() + from, itemsize);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < shape[axis]) {
        break;
      }
      from -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

class NpyColumn : public Column {
 public:
  NpyColumn(std::shared_ptr<const ByteColumn> bytes, const RecordTable& table)
      : bytes_(std::move(bytes)), kinds_of_(bytes_->size()), rows_(bytes_->size()) {
    std::vector<std::byte> before;
    std::vector<std::byte> header;
    for (std::uint64_t record = 0; record < bytes_->size(); ++record) {
      read_record(record, table, header, before);
    }
  }

  std::uint64_t size() const override { return bytes_->size(); }

  void inspect(std::uint64_t record, Item& item) const override {
    item.damage = damage(record);
    item.present = kinds_of_[record] != kAbsent;
    if (item.damage != nullptr || !item.present) {
      return;
    }
    const Kind& kind = kinds_[kinds_of_[record]];
    item.dtype = kind.dtype;
    item.shape = shape(record);
  }

  bool decoded(std::uint64_t record) const override {
    return kinds_of_[record] < kinds_.size() && kinds_[kinds_of_[record]].fortran_order;
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const std::uint64_t skip = kinds_[kinds_of_[record]].header_nbytes;
    plan_stored(*bytes_, record, {range.begin + skip, range.end + skip}, plan);
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    const Guard guard = bytes_->guard(record);
    if (guard.table != nullptr) {
      context.require_intact(*guard.table, guard.first);
    }
    const Kind& kind = kinds_[kinds_of_[record]];
    std::vector<std::byte> stored(out.size());
    read_stored(*bytes_, record, kind.header_nbytes, stored);
    transpose(stored, out, shape(record), kind.dtype.itemsize);
  }

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;
  static constexpr std::uint32_t kDamaged = UINT32_MAX - 1;

  const Damage* damage(std::uint64_t record) const {
    if (const Damage* known = bytes_->damage(record)) {
      return known;
    }
    return damage_.find(record);
  }

  Shape shape(std::uint64_t record) const {
    const Kind& kind = kinds_[kinds_of_[record]];
    Shape shape;
    if (!kind.scalar) {
      shape.push_back(rows_[record]);
      shape.insert(shape.end(), kind.trailing.begin(), kind.trailing.end());
    }
    return shape;
  }

  // `before` is the previous record's header: most are the same to the byte.
  void read_record(std::uint64_t record, const RecordTable& table, std::vector<std::byte>& header,
                   std::vector<std::byte>& before) {
    kinds_of_[record] = kDamaged;
    if (bytes_->damage(record) != nullptr) {
      return;
    }
    std::vector<Extent> extents;
    if (!bytes_->locate(record, extents)) {
      kinds_of_[record] = kAbsent;
      return;
    }
    const std::uint64_t nbytes = stored_nbytes(*bytes_, record);
    header.resize(std::min<std::uint64_t>(nbytes, kUsualHeaderNbytes));
    read_stored(*bytes_, record, 0, header);
    const std::string& name = extents.front().source->name();
    const std::uint64_t offset = extents.front().offset;
    if (record > 0 && !header.empty() && header == before && kinds_of_[record - 1] < kDamaged &&
        kinds_[kinds_of_[record - 1]].header_nbytes <= header.size()) {
      kinds_of_[record] = kinds_of_[record - 1];
      rows_[record] = rows_[record - 1];
    } else if (!is_npy(header)) {
      throw file_error(
          ErrorKind::kUnsupported, name,
          fmt::format("{} is no .npy file, the first record is one", record_name(table, record)));
    } else {
      before = header;
      try {
        parse(record, table, header, name, offset, nbytes);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kCorrupt) {
          throw;
        }
        damage_.add(record, [&] { return Damage{error, std::nullopt}; });
        return;
      }
    }
    require_data(record, name, offset, nbytes);
  }

  void parse(std::uint64_t record, const RecordTable& table, std::vector<std::byte>& header,
             const std::string& name, std::uint64_t offset, std::uint64_t nbytes) {
    const auto wanted = npy_header_nbytes(header);
    if (!wanted || *wanted > nbytes) {
      throw corrupt_at(name, offset, "the .npy header does not end within its record");
    }
    if (*wanted > header.size()) {
      header.resize(*wanted);
      read_stored(*bytes_, record, 0, header);
    }
    const NpyHeader parsed = parse_npy_header(header, name, offset);
    Kind kind;
    kind.dtype = parsed.dtype;
    kind.scalar = parsed.shape.empty();
    kind.fortran_order = parsed.fortran_order && parsed.shape.size() > 1;
    kind.header_nbytes = parsed.nbytes;
    if (!kind.scalar) {
      kind.trailing.assign(parsed.shape.begin() + 1, parsed.shape.end());
      rows_[record] = parsed.shape[0];
    } else {
      rows_[record] = 1;
    }
    // The product fits: parse_npy_header has checked it, but for zero rows of anything.
    const auto elements = element_count(kind.trailing);
    const auto row_nbytes = elements ? checked_mul(*elements, kind.dtype.itemsize) : std::nullopt;
    if (!row_nbytes) {
      throw corrupt_at(name, offset, "the shape in the .npy header exceeds 2^63 bytes");
    }
    kind.row_nbytes = *row_nbytes;
    if (!kinds_.empty() && !one_array(kinds_.front(), kind)) {
      throw file_error(
          ErrorKind::kUnsupported, name,
          fmt::format("{} is {} {}, the first is {}", record_name(table, record), kind.dtype.text(),
                      shape_text(parsed.shape), kinds_.front().dtype.text()));
    }
    const auto known = std::find(kinds_.begin(), kinds_.end(), kind);
    kinds_of_[record] = static_cast<std::uint32_t>(known - kinds_.begin());
    if (known == kinds_.end()) {
      kinds_.push_back(std::move(kind));
    }
  }

  // Bytes behind the data are ignored, as numpy does.
  void require_data(std::uint64_t record, const std::string& name, std::uint64_t offset,
                    std::uint64_t nbytes) {
    const Kind& kind = kinds_[kinds_of_[record]];
    const auto data_nbytes = checked_mul(rows_[record], kind.row_nbytes);
    if (!data_nbytes || !lies_within(kind.header_nbytes, *data_nbytes, nbytes)) {
      damage_.add(record, [&] {
        return Damage{corrupt_at(name, offset,
                                 fmt::format("the .npy file's shape is {} of {}, its record has "
                                             "only {} bytes; the record is damaged",
                                             shape_text(shape(record)), kind.dtype.text(), nbytes)),
                      std::nullopt};
      });
      kinds_of_[record] = kDamaged;
    }
  }

  std::shared_ptr<const ByteColumn> bytes_;
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> kinds_of_;
  std::vector<std::uint64_t> rows_;
  DamageList damage_;
};

}  // namespace

std::shared_ptr<const Column> make_npy_column(std::shared_ptr<const ByteColumn> bytes,
                                              const RecordTable& table) {
  return std::make_shared<NpyColumn>(std::move(bytes), table);
}

}  // namespace npyfs
