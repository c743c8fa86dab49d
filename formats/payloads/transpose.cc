// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/transpose.h"

#include <cstring>
#include <vector>

namespace npyfs {

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

}  // namespace npyfs
