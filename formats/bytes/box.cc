// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/box.h"

#include <algorithm>
#include <cstring>

namespace npyfs {

namespace {

std::uint64_t offset_of(const Shape& place, const Shape& strides) {
  std::uint64_t offset = 0;
  for (std::size_t axis = 0; axis < place.size(); ++axis) {
    offset += place[axis] * strides[axis];
  }
  return offset;
}

// Runs of `run_nbytes` at each place of the axes from `axis` to before `end`.
void copy_runs(const std::byte* from, const Shape& from_strides, std::byte* to,
               const Shape& to_strides, const Shape& extent, std::size_t axis, std::size_t end,
               std::uint64_t run_nbytes) {
  if (axis == end) {
    std::memcpy(to, from, run_nbytes);
    return;
  }
  for (std::uint64_t i = 0; i < extent[axis]; ++i) {
    copy_runs(from + i * from_strides[axis], from_strides, to + i * to_strides[axis], to_strides,
              extent, axis + 1, end, run_nbytes);
  }
}

void fill_rows(std::byte* to, const Shape& strides, const Shape& extent, std::size_t axis,
               std::span<const std::byte> element) {
  if (axis + 1 >= extent.size()) {
    fill_elements({to, (extent.empty() ? 1 : extent.back()) * element.size()}, element);
    return;
  }
  for (std::uint64_t i = 0; i < extent[axis]; ++i) {
    fill_rows(to + i * strides[axis], strides, extent, axis + 1, element);
  }
}

}  // namespace

Shape strides_of(const Shape& shape, std::uint64_t itemsize) {
  Shape strides(shape.size(), itemsize);
  for (std::size_t axis = shape.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * shape[axis];
  }
  return strides;
}

void copy_strided(Strided<const std::byte> from, Strided<std::byte> to, const Shape& extent,
                  std::uint64_t itemsize) {
  if (std::find(extent.begin(), extent.end(), 0U) != extent.end()) {
    return;
  }
  // Axes along which both go on where the one behind them ends are one run.
  std::size_t end = extent.size();
  std::uint64_t run_nbytes = itemsize;
  for (; end > 0; --end) {
    if (extent[end - 1] == 1) {
      continue;
    }
    if (from.strides[end - 1] != run_nbytes || to.strides[end - 1] != run_nbytes) {
      break;
    }
    run_nbytes *= extent[end - 1];
  }
  copy_runs(from.first, from.strides, to.first, to.strides, extent, 0, end, run_nbytes);
}

void copy_box(Dense<const std::byte> from, const Shape& from_begin, Dense<std::byte> to,
              const Shape& to_begin, const Shape& extent, std::uint64_t itemsize) {
  const Shape from_strides = strides_of(from.shape, itemsize);
  const Shape to_strides = strides_of(to.shape, itemsize);
  copy_strided({from.bytes + offset_of(from_begin, from_strides), from_strides},
               {to.bytes + offset_of(to_begin, to_strides), to_strides}, extent, itemsize);
}

void fill_elements(std::span<std::byte> out, std::span<const std::byte> element) {
  if (out.empty() || element.empty()) {
    return;
  }
  std::size_t filled = std::min(element.size(), out.size());
  std::memcpy(out.data(), element.data(), filled);
  while (filled < out.size()) {
    const std::size_t more = std::min(filled, out.size() - filled);
    std::memcpy(out.data() + filled, out.data(), more);
    filled += more;
  }
}

void fill_strided(Strided<std::byte> to, const Shape& extent, std::span<const std::byte> element) {
  fill_rows(to.first, to.strides, extent, 0, element);
}

bool advance(Shape& place, const Shape& extent) {
  for (std::size_t axis = place.size(); axis-- > 0;) {
    if (++place[axis] < extent[axis]) {
      return true;
    }
    place[axis] = 0;
  }
  return false;
}

}  // namespace npyfs
