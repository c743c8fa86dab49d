// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/transpose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "formats/bytes/box.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

std::uint64_t checked_nbytes(const Shape& shape, std::uint64_t element_nbytes) {
  const auto count = element_count(shape);
  const auto nbytes = count ? checked_mul(*count, element_nbytes) : std::nullopt;
  if (!nbytes) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("a chunk of {} exceeds 2^63 bytes", shape_text(shape)));
  }
  return *nbytes;
}

}  // namespace

Transposition::Transposition(Shape shape, const std::vector<std::size_t>& order,
                             std::uint64_t element_nbytes)
    : shape_(std::move(shape)),
      element_nbytes_(element_nbytes),
      nbytes_(checked_nbytes(shape_, element_nbytes)),
      from_steps_(shape_.size()),
      to_steps_(shape_.size()) {
  std::uint64_t from_step = element_nbytes;
  std::uint64_t to_step = element_nbytes;
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    to_steps_[axis] = to_step;
    to_step *= shape_[axis];
    from_steps_[order[axis]] = from_step;
    from_step *= shape_[order[axis]];
  }
  // The axes along which neighbours are close there and here.
  row_axis_ = order.back();
  column_axis_ = shape_.size() - 1;
}

void Transposition::apply(std::span<const std::byte> in, std::span<std::byte> out) const {
  if (nbytes_ == 0) {
    return;
  }
  Shape others = shape_;
  others[row_axis_] = others[column_axis_] = 1;
  Shape place(shape_.size());
  do {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    for (std::size_t axis = 0; axis < place.size(); ++axis) {
      from += place[axis] * from_steps_[axis];
      to += place[axis] * to_steps_[axis];
    }
    copy_matrix(in.data() + from, out.data() + to);
  } while (advance(place, others));
}

// The size as a constant, so that an element is one load and one store.
template <std::size_t kNbytes>
void Transposition::copy_tile(const std::byte* from, std::byte* to, const Steps& steps,
                              std::uint64_t rows, std::uint64_t columns) const {
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      std::memcpy(to + row * steps.to_row + column * steps.to_column,
                  from + row * steps.from_row + column * steps.from_column,
                  kNbytes != 0 ? kNbytes : element_nbytes_);
    }
  }
}

void Transposition::copy_matrix(const std::byte* from, std::byte* to) const {
  // Tiles of which both sides stay in the first cache.
  constexpr std::uint64_t kTile = 32;
  const std::uint64_t rows = row_axis_ == column_axis_ ? 1 : shape_[row_axis_];
  const std::uint64_t columns = shape_[column_axis_];
  const Steps steps{from_steps_[row_axis_], from_steps_[column_axis_], to_steps_[row_axis_],
                    to_steps_[column_axis_]};
  for (std::uint64_t row = 0; row < rows; row += kTile) {
    for (std::uint64_t column = 0; column < columns; column += kTile) {
      copy_tile_of_any(from + row * steps.from_row + column * steps.from_column,
                       to + row * steps.to_row + column * steps.to_column, steps,
                       std::min(kTile, rows - row), std::min(kTile, columns - column));
    }
  }
}

void Transposition::copy_tile_of_any(const std::byte* from, std::byte* to, const Steps& steps,
                                     std::uint64_t rows, std::uint64_t columns) const {
  switch (element_nbytes_) {
    case 1:
      return copy_tile<1>(from, to, steps, rows, columns);
    case 2:
      return copy_tile<2>(from, to, steps, rows, columns);
    case 4:
      return copy_tile<4>(from, to, steps, rows, columns);
    case 8:
      return copy_tile<8>(from, to, steps, rows, columns);
    default:
      return copy_tile<0>(from, to, steps, rows, columns);
  }
}

void transpose(std::span<const std::byte> in, std::span<std::byte> out, const Shape& shape,
               std::uint64_t itemsize) {
  if (shape.size() < 2) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  std::vector<std::size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  Transposition(shape, order, itemsize).apply(in, out);
}

}  // namespace npyfs
