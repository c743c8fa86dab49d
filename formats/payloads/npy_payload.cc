// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/bytes/npy_header.h"
#include "formats/bytes/transpose.h"
#include "formats/damage_list.h"
#include "formats/extents.h"
#include "formats/payloads/payload.h"
#include "formats/payloads/payload_table.h"

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

class NpyColumn : public Column {
 public:
  explicit NpyColumn(const PayloadField& field)
      : bytes_(field.bytes), named_(field.named), kinds_of_(bytes_->size()), rows_(bytes_->size()) {
    std::vector<std::byte> header;
    Previous previous;
    for (std::uint64_t record = 0; record < bytes_->size(); ++record) {
      read_record(record, field, header, previous);
    }
    if (kinds_.empty() && no_magic_) {
      throw *no_magic_;
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
    context.require_intact(bytes_->guard(record));
    const Kind& kind = kinds_[kinds_of_[record]];
    std::vector<std::byte> stored(out.size());
    read_stored(*bytes_, record, kind.header_nbytes, stored);
    transpose(stored, out, shape(record), kind.dtype.itemsize);
  }

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;
  static constexpr std::uint32_t kDamaged = UINT32_MAX - 1;
  // How many unusual headers are verified, as long as their records turn out intact: rows that
  // differ everywhere are no damage, and not all records can be read at mount.
  static constexpr int kMaxSurprises = 16;
  // A larger record is believed, unless the whole array depends on it.
  static constexpr std::uint64_t kMaxProbeNbytes = std::uint64_t{64} << 20;

  const Damage* damage(std::uint64_t record) const {
    if (const Damage* known = bytes_->damage(record)) {
      return known;
    }
    return damage_.find(record);
  }

  Shape shape(std::uint64_t record) const {
    return shape_of(kinds_[kinds_of_[record]], rows_[record]);
  }

  static Shape shape_of(const Kind& kind, std::uint64_t rows) {
    Shape shape;
    if (!kind.scalar) {
      shape.push_back(rows);
      shape.insert(shape.end(), kind.trailing.begin(), kind.trailing.end());
    }
    return shape;
  }

  // The last record that was a whole .npy file.
  struct Previous {
    std::optional<std::uint64_t> record;
    std::vector<std::byte> header;  // most are the same to the byte
  };
  // What a header says of its record.
  struct Parsed {
    Kind kind;
    std::uint64_t rows = 1;
  };

  void read_record(std::uint64_t record, const PayloadField& field, std::vector<std::byte>& header,
                   Previous& previous) {
    kinds_of_[record] = kDamaged;
    if (bytes_->damage(record) != nullptr) {
      return;
    }
    std::vector<Extent> extents;
    const bool present = bytes_->locate(record, extents);
    const std::uint64_t nbytes = present ? stored_nbytes(*bytes_, record) : 0;
    if (nbytes == 0) {
      kinds_of_[record] = kAbsent;
      return;
    }
    header.resize(std::min<std::uint64_t>(nbytes, kUsualHeaderNbytes));
    read_stored(*bytes_, record, 0, header);
    const std::string& name = extents.front().source->name();
    const std::uint64_t offset = extents.front().offset;
    if (previous.record && header == previous.header) {
      const std::uint32_t kind = kinds_of_[*previous.record];
      const std::uint64_t rows = rows_[*previous.record];
      if (!require_data(record, kinds_[kind], rows, name, offset, nbytes)) {
        return;
      }
      kinds_of_[record] = kind;
      rows_[record] = rows;
    } else if (!read_header(record, field, header, name, offset, nbytes, previous)) {
      return;
    }
    previous.record = record;
    previous.header = header;
  }

  // A header unlike the previous record's; false where its record is damaged. What it says may be
  // a flipped bit of one record, and would then be said of all: the more that hangs on it, the
  // sooner the record's checksum is asked.
  bool read_header(std::uint64_t record, const PayloadField& field, std::vector<std::byte>& header,
                   const std::string& name, std::uint64_t offset, std::uint64_t nbytes,
                   const Previous& previous) {
    Parsed parsed;
    try {
      parsed = parse(record, field, header, name, offset, nbytes);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kUnsupported && is_failing(record, field, nbytes)) {
        return false;
      }
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      damage_.add(record, error.said(), [&] { return Damage{error, data_nbytes(nbytes)}; });
      return false;
    }
    if (parsed.kind.fortran_order && is_mostly_holes(*bytes_, record)) {
      damage_.add(record, "holes", [&] {
        return Damage{corrupt_at(name, offset,
                                 fmt::format("{} is {} bytes in Fortran order, nearly all of them "
                                             "holes, expected C order",
                                             record_name(field.table, record), nbytes)),
                      data_nbytes(nbytes)};
      });
      return false;
    }
    // What its own record belies is said of nobody else.
    if (!require_data(record, parsed.kind, parsed.rows, name, offset, nbytes)) {
      return false;
    }
    const bool first = kinds_.empty();
    const bool fits = first || one_array(kinds_.front(), parsed.kind);
    const bool other_rows = previous.record && rows_[*previous.record] != parsed.rows;
    const bool affordable = nbytes <= kMaxProbeNbytes && intact_surprises_ < kMaxSurprises;
    if (!fits || ((first || other_rows) && affordable)) {
      if (is_failing(record, field, nbytes)) {
        return false;
      }
      ++intact_surprises_;
    }
    if (!fits) {
      throw file_error(
          ErrorKind::kUnsupported, name,
          fmt::format("{} is {} {}, the first is {}", record_name(field.table, record),
                      parsed.kind.dtype.text(), shape_text(shape_of(parsed.kind, parsed.rows)),
                      kinds_.front().dtype.text()));
    }
    const auto known = std::find(kinds_.begin(), kinds_.end(), parsed.kind);
    kinds_of_[record] = static_cast<std::uint32_t>(known - kinds_.begin());
    rows_[record] = parsed.rows;
    if (known == kinds_.end()) {
      kinds_.push_back(std::move(parsed.kind));
    }
    return true;
  }

  Parsed parse(std::uint64_t record, const PayloadField& field, std::vector<std::byte>& header,
               const std::string& name, std::uint64_t offset, std::uint64_t nbytes) {
    if (!is_npy(header)) {
      Error other = file_error(ErrorKind::kUnsupported, name,
                               fmt::format("{} is no .npy file, others of its field are",
                                           record_name(field.table, record)));
      // Where a name says that it is one, and it is nothing else that is known, it is damaged.
      if (!named_ || extension_by_magic(header) != "bin") {
        throw other;
      }
      no_magic_ = no_magic_ ? no_magic_ : other;
      throw corrupt_at(name, offset,
                       fmt::format("{} does not begin as a .npy file does; it is damaged",
                                   record_name(field.table, record)));
    }
    const auto wanted = npy_header_nbytes(header);
    if (!wanted || *wanted > nbytes) {
      throw corrupt_at(name, offset, "the .npy header does not end within its record");
    }
    if (*wanted > header.size()) {
      header.resize(*wanted);
      read_stored(*bytes_, record, 0, header);
    }
    const NpyHeader npy = parse_npy_header(header, name, offset);
    Parsed parsed;
    Kind& kind = parsed.kind;
    kind.dtype = npy.dtype;
    kind.scalar = npy.shape.empty();
    kind.fortran_order = npy.fortran_order && npy.shape.size() > 1;
    kind.header_nbytes = npy.nbytes;
    if (!kind.scalar) {
      kind.trailing.assign(npy.shape.begin() + 1, npy.shape.end());
      parsed.rows = npy.shape[0];
    }
    // The product fits: parse_npy_header has checked it, but for zero rows of anything.
    const auto elements = element_count(kind.trailing);
    const auto row_nbytes = elements ? checked_mul(*elements, kind.dtype.itemsize) : std::nullopt;
    if (!row_nbytes) {
      throw corrupt_at(name, offset, "the shape in the .npy header exceeds 2^63 bytes");
    }
    kind.row_nbytes = *row_nbytes;
    return parsed;
  }

  // Whether the record of `nbytes` does not match its checksum, and is left at that.
  bool is_failing(std::uint64_t record, const PayloadField& field, std::uint64_t nbytes) {
    const auto fault = field.verifier.fault_of(bytes_->guard(record));
    if (fault) {
      damage_.add(record, fault->said(), [&] { return Damage{*fault, data_nbytes(nbytes)}; });
    }
    return fault.has_value();
  }

  // What lies behind the header of a damaged record of `nbytes`, if its header is like others.
  std::optional<std::uint64_t> data_nbytes(std::uint64_t nbytes) const {
    const std::uint64_t header_nbytes = kinds_.empty() ? nbytes : kinds_.front().header_nbytes;
    return header_nbytes < nbytes ? std::optional(nbytes - header_nbytes) : std::nullopt;
  }

  // Bytes behind the data are ignored, as numpy does.
  // False where the data does not lie within the record, which is then damaged.
  bool require_data(std::uint64_t record, const Kind& kind, std::uint64_t rows,
                    const std::string& name, std::uint64_t offset, std::uint64_t nbytes) {
    const auto data_nbytes = checked_mul(rows, kind.row_nbytes);
    const bool whole = data_nbytes && lies_within(kind.header_nbytes, *data_nbytes, nbytes);
    if (!whole) {
      damage_.add(record, "cut", [&] {
        return Damage{
            corrupt_at(name, offset,
                       fmt::format("the .npy file's shape is {} of {}, its record has "
                                   "only {} bytes; the record is damaged",
                                   shape_text(shape_of(kind, rows)), kind.dtype.text(), nbytes)),
            std::nullopt};
      });
    }
    return whole;
  }

  std::shared_ptr<const ByteColumn> bytes_;
  bool named_;
  std::optional<Error> no_magic_;  // of the first record that is no .npy file
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> kinds_of_;
  std::vector<std::uint64_t> rows_;
  DamageList damage_;
  int intact_surprises_ = 0;
};

}  // namespace

std::shared_ptr<const Column> make_npy_column(const PayloadField& field) {
  return std::make_shared<NpyColumn>(field);
}

}  // namespace npyfs
