// SPDX-License-Identifier: Apache-2.0

#include "formats/column.h"

#include <stdexcept>

namespace npyfs {

void Column::decode(std::uint64_t /*record*/, std::span<std::byte> /*out*/,
                    DecodeContext& /*context*/) const {
  throw std::logic_error("a column that never says decoded() was asked to decode");
}

}  // namespace npyfs
