// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/box.h"

#include <algorithm>
#include <cstring>

namespace npyfs {

namespace {

std::uint64_t offset_of(const Shape& shape, const Shape& begin, const Shape& place) {
  std::uint64_t offset = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    offset = offset * shape[axis] + begin[axis] + place[axis];
  }
  return offset;
}

}  // namespace

bool advance(Shape& place, const Shape& extent) {
  for (std::size_t axis = place.size(); axis-- > 0;) {
    if (++place[axis] < extent[axis]) {
      return true;
    }
    place[axis] = 0;
  }
  return false;
}

void copy_box(Dense<const std::byte> from, const Shape& from_begin, Dense<std::byte> to,
              const Shape& to_begin, const Shape& extent, std::uint64_t element_nbytes) {
  if (std::find(extent.begin(), extent.end(), 0U) != extent.end()) {
    return;
  }
  // Axes that both have whole are one run with the axis before them.
  std::size_t axis = extent.size();
  std::uint64_t run = 1;
  while (axis > 0) {
    --axis;
    run *= extent[axis];
    if (extent[axis] != from.shape[axis] || extent[axis] != to.shape[axis]) {
      break;
    }
  }
  Shape outer(extent.begin(), extent.begin() + static_cast<std::ptrdiff_t>(axis));
  Shape place(extent.size());
  outer.resize(extent.size(), 1);
  do {
    std::memcpy(to.bytes + offset_of(to.shape, to_begin, place) * element_nbytes,
                from.bytes + offset_of(from.shape, from_begin, place) * element_nbytes,
                run * element_nbytes);
  } while (advance(place, outer));
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

}  // namespace npyfs
