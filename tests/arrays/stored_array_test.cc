// SPDX-License-Identifier: Apache-2.0
//
// Whole .npy files of Fortran order in C order.

#include "formats/arrays/stored_array.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::packed;
using testing::read_array;

// As large as it says, without memory: the 8 bytes at each multiple of 8 are its number.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(std::uint64_t nbytes) : ByteSource("counting", nbytes, 0) {}
  mutable std::uint64_t reads = 0;

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t number = (offset + i) / 8;
      out[i] = reinterpret_cast<const std::byte*>(&number)[(offset + i) % 8];
    }
  }
};

StoredArray fortran(const SourcePtr& source, const char* dtype, const Shape& shape) {
  StoredNpy npy;
  npy.source = source;
  npy.header.dtype = DType::simple(dtype);
  npy.header.shape = shape;
  npy.header.fortran_order = true;
  StoredArray stored;
  stored.name = "x";
  stored.parts = {npy};
  stored.sources = {source};
  return stored;
}

// What stands at `place` in C order.
std::int64_t expected_at(const Shape& shape, std::uint64_t place) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = place % shape[axis];
    place /= shape[axis];
  }
  std::uint64_t number = 0;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    number = number * shape[axis] + index[axis];
  }
  return static_cast<std::int64_t>(number);
}

TEST(TransposedNpy, EqualsTheArray) {
  for (const Shape& shape :
       {Shape{7, 3}, Shape{1, 5}, Shape{5, 1}, Shape{3, 4, 5}, Shape{2, 1, 3, 4}, Shape{1000, 1000},
        Shape{3, 700'000}, Shape{2, 900, 400}}) {
    const std::uint64_t count = *element_count(shape);
    const ArrayPtr array = make_stored_array(
        fortran(std::make_shared<CountingSource>(count * 8), "<i8", shape), "x", true);
    EXPECT_FALSE(array->fortran_order());
    std::vector<std::int64_t> expected;
    for (std::uint64_t place = 0; place < count; ++place) {
      expected.push_back(expected_at(shape, place));
    }
    EXPECT_EQ(read_array(*array), packed(expected)) << shape_text(shape);
  }
  const Shape none{0, 3};
  EXPECT_EQ(make_stored_array(fortran(std::make_shared<CountingSource>(0), "<i8", none), "x", true)
                ->shape(),
            none);
}

// However long a row is, what is decoded at once is small, and so is what is read for it.
TEST(TransposedNpy, OfAnySizeIsDecodedInTiles) {
  constexpr std::uint64_t kMostNbytes = std::uint64_t{4} << 20;
  std::mt19937_64 random(6);
  for (const Shape& shape :
       {Shape{3, std::uint64_t{1} << 50}, Shape{std::uint64_t{1} << 50, 3},
        Shape{std::uint64_t{1} << 25, std::uint64_t{1} << 25}, Shape{1, 2, std::uint64_t{1} << 45},
        Shape{100'000, 1000, 1000}, Shape{4, 1'000'000, 1'000'000}}) {
    const std::uint64_t count = *element_count(shape);
    const auto source = std::make_shared<CountingSource>(count * 8);
    const ArrayPtr array = make_stored_array(fortran(source, "<i8", shape), "x", true);
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t place = random() % (count - 1);
      Plan plan;
      array->plan({place * 8, place * 8 + 16}, plan);
      for (const Piece& piece : plan.pieces()) {
        ASSERT_EQ(piece.kind, Piece::Kind::kChunk);
        ASSERT_LE(piece.chunks->chunk_nbytes(piece.chunk), kMostNbytes);
      }
      ASSERT_EQ(read_array(*array, {place * 8, place * 8 + 16}),
                packed<std::int64_t>({expected_at(shape, place), expected_at(shape, place + 1)}))
          << shape_text(shape) << " at " << place;
    }
    // At most a read for each page of a tile, but where axis 0 is shorter than that.
    if (shape[0] >= 512) {
      EXPECT_LE(source->reads, 6 * kMostNbytes / 4096) << shape_text(shape);
    }
  }
}

}  // namespace
}  // namespace npyfs
