// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/chunk_keys.h"

#include <fmt/format.h>

#include <charconv>

namespace npyfs {

Shape grid_shape_of(const Shape& shape, const Shape& chunk_shape) {
  Shape grid;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::uint64_t length = chunk_shape[axis];
    grid.push_back(shape[axis] / length + (shape[axis] % length != 0 ? 1 : 0));
  }
  return grid;
}

std::string ChunkKeys::key(const Shape& place) const {
  std::string key = prefixed ? "c" : "";
  for (const std::uint64_t index : place) {
    if (!key.empty()) {
      key += separator;
    }
    fmt::format_to(std::back_inserter(key), "{}", index);
  }
  return key.empty() ? "0" : key;
}

std::string ChunkKeys::key(std::uint64_t number, const Shape& grid_shape) const {
  Shape place(grid_shape.size());
  for (std::size_t axis = place.size(); axis-- > 0;) {
    place[axis] = number % grid_shape[axis];
    number /= grid_shape[axis];
  }
  return key(place);
}

std::optional<std::uint64_t> ChunkKeys::number(std::string_view key,
                                               const Shape& grid_shape) const {
  Shape place;
  std::string_view rest = key;
  if (prefixed && rest.starts_with('c')) {
    rest.remove_prefix(rest.size() > 1 ? 2 : 1);
  }
  while (!rest.empty() && place.size() <= grid_shape.size()) {
    std::uint64_t index = 0;
    const auto [end, error] = std::from_chars(rest.begin(), rest.end(), index);
    if (error != std::errc()) {
      return std::nullopt;
    }
    place.push_back(index);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.begin()));
    rest.remove_prefix(rest.empty() ? 0 : 1);
  }
  if (grid_shape.empty()) {
    place.clear();
  }
  std::uint64_t number = 0;
  for (std::size_t axis = 0; axis < grid_shape.size(); ++axis) {
    if (place.size() != grid_shape.size() || place[axis] >= grid_shape[axis]) {
      return std::nullopt;
    }
    number = number * grid_shape[axis] + place[axis];
  }
  // Only as key() spells it: no leading zeroes, no other separator.
  return this->key(place) == key ? std::optional(number) : std::nullopt;
}

}  // namespace npyfs
