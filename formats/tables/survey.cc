// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/extents.h"

namespace npyfs {

namespace {

std::string item_text(const Item& item) {
  return fmt::format("{} {}", item.dtype.text(), shape_text(item.shape));
}

// A scalar counts as a row of one: one file may have single values where another has lists.
bool alike_but_rows(const Item& item, const Survey& survey) {
  const std::size_t rank = std::max<std::size_t>(1, item.shape.size());
  return item.dtype == survey.dtype && rank == std::max<std::size_t>(1, survey.shape.size()) &&
         (rank == 1 ||
          std::equal(item.shape.begin() + 1, item.shape.end(), survey.shape.begin() + 1));
}

// An item of two or more dimensions without elements: it fits items of any width.
bool is_void(const Shape& shape) {
  return shape.size() > 1 &&
         std::all_of(shape.begin(), shape.end(), [](std::uint64_t n) { return n == 0; });
}

// The type that can hold items of both types; nothing if there is none.
std::optional<DType> common_dtype(const DType& a, const DType& b) {
  if (a.kind == 'U' && b.kind == 'U') {
    return a.itemsize < b.itemsize ? b : a;
  }
  const DType single = DType::simple("<f4");
  const DType wide = DType::simple("<f8");
  if ((a == single && b == wide) || (a == wide && b == single)) {
    return single;
  }
  return std::nullopt;
}

std::uint64_t rows_of(const Shape& shape) { return shape.empty() ? 1 : shape[0]; }

class Surveyor {
 public:
  Surveyor(const Column& column, const RecordTable& table, const Verifier& verifier)
      : column_(column), table_(table), verifier_(verifier) {
    found_.records = column.size();
  }

  Survey look() {
    if (const auto item = column_.uniform(); item && found_.records > 0) {
      take_first(*item);
      found_.damaged = std::move(damaged_);
      return std::move(found_);
    }
    Item item;
    for (std::uint64_t record = 0; record < found_.records; ++record) {
      item.present = true;
      item.damage = nullptr;
      inspect(record, item);
    }
    damaged_->shrink();
    size_damaged();
    found_.damaged = std::move(damaged_);
    return std::move(found_);
  }

 private:
  void inspect(std::uint64_t record, Item& item) {
    try {
      column_.inspect(record, item);
    } catch (const Error& error) {
      const auto fault = error.kind() == ErrorKind::kCorrupt ? verifier_.fault_of(guard(record))
                                                             : std::optional<Error>();
      if (!fault) {
        throw;
      }
      add_damaged(record, *fault);
      return;
    }
    if (item.damage != nullptr) {
      add_damaged(record, item.damage->error);
    } else if (!item.present) {
      add_absent(record);
    } else if (found_.empty) {
      take_first(item);
      push_rows();
    } else {
      compare(record, item);
    }
  }

  // That of the record's stored bytes: a column of known type has none to ask for.
  Guard guard(std::uint64_t record) const {
    for (const StoredUnit& unit : table_.stored()) {
      if (const Guard guard = unit.bytes->guard(record); guard.checksums != nullptr) {
        return guard;
      }
    }
    return {};
  }

  void take_first(const Item& item) {
    found_.empty = false;
    found_.dtype = item.dtype;
    found_.shape = item.shape;
  }

  void compare(std::uint64_t record, Item& item) {
    if (item.dtype != found_.dtype) {
      promote(record, item);
    }
    if (is_void(found_.shape) && item.shape.size() == found_.shape.size() &&
        item.dtype == found_.dtype && !is_void(item.shape)) {
      start_rows(record);  // those before have no rows
      found_.all_alike = false;
      found_.shape = item.shape;
    } else if (is_void(item.shape) && item.shape.size() == found_.shape.size()) {
      std::copy(found_.shape.begin() + 1, found_.shape.end(), item.shape.begin() + 1);
    }
    if (item.shape == found_.shape && item.dtype == found_.dtype) {
      push_rows();
      return;
    }
    if (found_.odd_record.empty() || (found_.same_rows && !alike_but_rows(item, found_))) {
      found_.odd_record =
          fmt::format("{} is {}, the first is {} {}", record_name(table_, record), item_text(item),
                      found_.dtype.text(), shape_text(found_.shape));
    }
    found_.all_alike = false;
    found_.same_rows = found_.same_rows && alike_but_rows(item, found_);
    start_rows(record);
    found_.rows.push_back(rows_of(item.shape));
  }

  // Promotes both types to one that holds both, if there is one.
  void promote(std::uint64_t record, Item& item) {
    const auto common = common_dtype(found_.dtype, item.dtype);
    if (!common) {
      return;
    }
    if (!found_.promoted) {
      found_.promoted = true;
      found_.odd_dtype = fmt::format("{} is {}, the first is {}", record_name(table_, record),
                                     item_text(item), found_.dtype.text());
    }
    found_.dtype = item.dtype = *common;
  }

  // The record has the common shape.
  void push_rows() {
    if (started_) {
      found_.rows.push_back(rows_of(found_.shape));
    }
  }

  // From here on the rows of each record are kept; those before `record` were all alike.
  void start_rows(std::uint64_t record) {
    if (!started_) {
      started_ = true;
      found_.rows.assign(record, found_.empty ? 0 : rows_of(found_.shape));
    }
  }

  void add_absent(std::uint64_t record) {
    if (found_.absent++ == 0) {
      found_.first_absent = record;
    }
    start_rows(record);
    found_.rows.push_back(0);
  }

  void add_damaged(std::uint64_t record, const Error& why) {
    damaged_->add(record, why.said(), [&] { return Damage{why, std::nullopt}; });
    found_.faults.add(why);
    if (started_) {
      found_.rows.push_back(0);
    }
  }

  // Damaged records have the rows that are known of them, else the common shape; where there is
  // none, the rows that their size tells.
  void size_damaged() {
    if (found_.empty) {
      return;
    }
    const bool ragged = started_;
    for (const std::uint64_t record : damaged_->list()) {
      const DamagedSize size = size_of_damaged(record);
      if (size.rows && !started_ && !found_.shape.empty() && *size.rows != rows_of(found_.shape)) {
        start_rows(found_.records);
        found_.all_alike = false;
        found_.odd_record =
            fmt::format("{} is damaged and has {} rows, the first is {}",
                        record_name(table_, record), *size.rows, shape_text(found_.shape));
      }
      if (started_ && size.rows) {
        found_.rows[record] = *size.rows;
      } else if (ragged) {
        take_rows_from_nbytes(record, size.nbytes);
      }
    }
  }

  void take_rows_from_nbytes(std::uint64_t record, std::optional<std::uint64_t> nbytes) {
    const std::uint64_t row_nbytes = row_elements(found_.shape) * found_.dtype.itemsize;
    const bool fits = nbytes && row_nbytes > 0 && *nbytes % row_nbytes == 0;
    found_.rows[record] = fits ? *nbytes / row_nbytes : 0;
    if (!fits && found_.unsized++ == 0) {
      found_.first_unsized = record;
    }
  }

  struct DamagedSize {
    std::optional<std::uint64_t> rows;
    std::optional<std::uint64_t> nbytes;
  };
  // What the column says of a damaged record's size: millions of sizes are better asked for again
  // than kept.
  DamagedSize size_of_damaged(std::uint64_t record) const {
    Item item;
    try {
      column_.inspect(record, item);
    } catch (const Error&) {
      return {};
    }
    return item.damage != nullptr ? DamagedSize{item.damage->rows, item.damage->nbytes}
                                  : DamagedSize{};
  }

  const Column& column_;
  const RecordTable& table_;
  const Verifier& verifier_;
  Survey found_;
  std::shared_ptr<DamageList> damaged_ = std::make_shared<DamageList>();
  bool started_ = false;
};

}  // namespace

Survey survey(const Column& column, const RecordTable& table, const Verifier& verifier) {
  return Surveyor(column, table, verifier).look();
}

}  // namespace npyfs
