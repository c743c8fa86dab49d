// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes of a view's array lie in the data of the plain array, the one that the view was
// made from: what is known of these bytes need not be read again.

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "formats/arrays/record_array.h"
#include "formats/bytes/byte_range.h"
#include "formats/tables/record_map.h"

namespace npyfs {

// Bytes [begin, begin + nbytes) of the view's data are those of the plain data from `plain` on.
struct PlainRange {
  std::uint64_t begin = 0;
  std::uint64_t plain = 0;
  std::uint64_t nbytes = 0;
};

// Immutable; any thread.
class PlainRanges {
 public:
  // `given` is the recipe of `plain`, `shown` that of the view's array, and row i of the view is
  // row map[i] of `plain`. A kConcat has its starts.
  PlainRanges(ArrayPtr plain, const ArrayRecipe& given, const ArrayRecipe& shown, RecordMap map)
      : plain_(std::move(plain)),
        given_(given),
        shown_(shown),
        map_(std::move(map)),
        is_dense_(given.form == shown.form && given_.unit_nbytes() == shown_.unit_nbytes()) {}

  const Array& plain() const { return *plain_; }

  // Calls visit(PlainRange) for what `range` has of the plain data, in order, until it returns
  // false. The bytes between two of these are padding, which the plain data lack.
  template <typename Visit>
  void find(ByteRange range, const Visit& visit) const {
    if (range.empty()) {
      return;
    }
    std::uint64_t row = shown_.find(range.begin);
    while (range.begin < range.end) {
      const auto [place, count] = map_.stretch(row);
      // Rows that follow each other in both are one range if no row is padded or cut.
      const std::uint64_t rows = is_dense_ ? count : 1;
      const std::uint64_t begin = shown_.begin(row);
      const std::uint64_t end = shown_.begin(row + rows);
      const std::uint64_t plain = given_.begin(place.record);
      const std::uint64_t plain_nbytes = given_.begin(place.record + rows) - plain;
      const std::uint64_t to = std::min({range.end, end, begin + plain_nbytes});
      if (range.begin < to &&
          !visit(PlainRange{range.begin, plain + (range.begin - begin), to - range.begin})) {
        return;
      }
      range.begin = std::max(range.begin, end);
      row += rows;
    }
  }

 private:
  ArrayPtr plain_;
  Slots given_;
  Slots shown_;
  RecordMap map_;
  bool is_dense_;
};

}  // namespace npyfs
