// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/box.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace npyfs {
namespace {

std::uint32_t test_seed() {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

TEST(CopyBox, CopiesThatAndNothingElse) {
  std::mt19937 random(test_seed());
  for (int round = 0; round < 200; ++round) {
    const std::size_t rank = random() % 4;
    Shape from_shape(rank), to_shape(rank), from_begin(rank), to_begin(rank), extent(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      from_shape[axis] = 1 + random() % 5;
      to_shape[axis] = random() % 2 == 0 ? from_shape[axis] : 1 + random() % 5;
      extent[axis] = random() % (std::min(from_shape[axis], to_shape[axis]) + 1);
      from_begin[axis] = random() % (from_shape[axis] - extent[axis] + 1);
      to_begin[axis] = random() % (to_shape[axis] - extent[axis] + 1);
    }
    std::vector<std::byte> from(*element_count(from_shape) * 2);
    for (std::byte& byte : from) {
      byte = static_cast<std::byte>(1 + random() % 255);
    }
    std::vector<std::byte> to(*element_count(to_shape) * 2);
    copy_box({from.data(), from_shape}, from_begin, {to.data(), to_shape}, to_begin, extent, 2);
    Shape place(rank);
    std::uint64_t at = 0;
    do {
      bool inside = true;
      std::uint64_t source = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        inside =
            inside && place[axis] >= to_begin[axis] && place[axis] - to_begin[axis] < extent[axis];
        source = source * from_shape[axis] + from_begin[axis] + place[axis] - to_begin[axis];
      }
      ASSERT_EQ(to[at * 2 + 1], inside ? from[source * 2 + 1] : std::byte{0});
      ++at;
    } while (advance(place, to_shape));
  }
}

TEST(FillElements, EndsWithinAnElementToo) {
  const std::string element = "abc";
  for (std::size_t n = 0; n < 20; ++n) {
    std::string out(n, '.');
    fill_elements(std::as_writable_bytes(std::span(out)), std::as_bytes(std::span(element)));
    EXPECT_EQ(out, std::string("abcabcabcabcabcabcabc").substr(0, n));
  }
}

}  // namespace
}  // namespace npyfs
