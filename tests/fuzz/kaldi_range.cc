// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the range behind a place in a Kaldi script: the first two bytes are the object's
// rows and columns.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/kaldi/location.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  if (size < 2) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  for (const ObjectKind kind : {ObjectKind::kFloatMatrix, ObjectKind::kFloatVector}) {
    Object object;
    object.kind = kind;
    object.rows = data[0];
    object.cols = data[1];
    std::string why;
    const auto range = parse_range(text, object, why);
    if (!range && why.empty()) {
      std::abort();  // refused without a word
    }
    if (range &&
        (std::uint64_t{range->first_row} + range->rows > object.rows ||
         (is_matrix(kind) && std::uint64_t{range->first_col} + range->cols > object.cols))) {
      std::abort();  // rows or columns that are not there
    }
  }
  return 0;
}
