// SPDX-License-Identifier: Apache-2.0
//
// Sizes as people read them.

#pragma once

#include <cstdint>
#include <string>

namespace npyfs {

// "960 bytes", "3.8 KiB".
std::string short_size(std::uint64_t nbytes);

}  // namespace npyfs
