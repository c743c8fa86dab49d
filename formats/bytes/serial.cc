// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/serial.h"

#include <atomic>

namespace npyfs {

namespace {

std::uint64_t next_value() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Serial::Serial() : value_(next_value()) {}

}  // namespace npyfs
