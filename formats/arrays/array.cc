// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/array.h"

#include <fmt/format.h>

namespace npyfs {

Array::Array(DType dtype, Shape shape) : dtype_(std::move(dtype)), shape_(std::move(shape)) {
  const auto elements = element_count(shape_);
  const auto nbytes = elements ? checked_mul(*elements, dtype_.itemsize) : std::nullopt;
  if (!nbytes || *nbytes > INT64_MAX - (1 << 24)) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("an array of {} {} exceeds 2^63 bytes, the limit of a file",
                            dtype_.text(), shape_text(shape_)));
  }
  nbytes_ = *nbytes;
}

}  // namespace npyfs
