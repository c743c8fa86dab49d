// SPDX-License-Identifier: Apache-2.0

#include "cli/sizes.h"

#include <fmt/format.h>

#include <string_view>

namespace npyfs {

std::string short_size(std::uint64_t nbytes) {
  if (nbytes < 1024) {
    return fmt::format("{} bytes", nbytes);
  }
  constexpr std::string_view kUnits = "KMGTPE";
  double value = static_cast<double>(nbytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}iB", value, kUnits[unit]);
}

}  // namespace npyfs
