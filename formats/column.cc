// SPDX-License-Identifier: Apache-2.0

#include "formats/column.h"

#include <stdexcept>

#include "formats/bytes/index_page.h"

namespace npyfs {

void Damage::write(PageWriter& page) const {
  error.write(page);
  page.optional(nbytes);
  page.optional(rows);
}

Damage Damage::read(PageReader& page) {
  Error error = Error::read(page);
  const auto nbytes = page.optional();
  return {std::move(error), nbytes, page.optional()};
}

void Column::decode(std::uint64_t /*record*/, std::span<std::byte> /*out*/,
                    DecodeContext& /*context*/) const {
  throw std::logic_error("a column that never says decoded() was asked to decode");
}

}  // namespace npyfs
