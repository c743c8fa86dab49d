// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/codecs/codec.h"

#include <fmt/format.h>

namespace npyfs {

Error Codec::damaged(std::string_view text) const {
  return {ErrorKind::kCorrupt, fmt::format("{}: {}", name_, text)};
}

}  // namespace npyfs
