// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/zero_source.h"

#include <cstring>

namespace npyfs {

namespace {

class ZeroSource : public ByteSource {
 public:
  ZeroSource() : ByteSource("zeroes", std::uint64_t{1} << 63, 0) {}

 private:
  void do_read(std::uint64_t /*offset*/, std::span<std::byte> out) const override {
    std::memset(out.data(), 0, out.size());
  }
};

}  // namespace

const ByteSource& zero_source() {
  static const ZeroSource source;
  return source;
}

}  // namespace npyfs
