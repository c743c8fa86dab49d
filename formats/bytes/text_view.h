// SPDX-License-Identifier: Apache-2.0
//
// Bytes looked at as text.

#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace npyfs {

// The same bytes; lives as long as they do.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace npyfs
