// SPDX-License-Identifier: Apache-2.0
//
// Chunk grids as arrays, against an array that is cut by the plainest means.

#include "formats/arrays/chunked_array.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "tests/support/fake_source.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::FakeSource;
using testing::read_plan;

using Kind = ChunkPlace::Kind;

std::uint32_t test_seed() {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

// `grid`'s cell at `at` cut out of `whole`: what its stored chunk holds, '#' where it hangs over.
std::string cut_chunk(const ChunkGrid& grid, std::uint64_t chunk, const std::string& whole) {
  const Shape begin = grid.chunk_begin(chunk);
  const Shape stored = grid.stored_shape(chunk);
  const std::size_t itemsize = grid.dtype().itemsize;
  std::string bytes;
  for (std::uint64_t i = 0; i < *element_count(stored); ++i) {
    std::uint64_t rest = i;
    std::uint64_t element = 0;
    std::uint64_t stride = 1;
    bool inside = true;
    for (std::size_t axis = stored.size(); axis-- > 0;) {
      const std::uint64_t at = begin[axis] + rest % stored[axis];
      rest /= stored[axis];
      inside = inside && at < grid.shape()[axis];
      element += at * stride;
      stride *= grid.shape()[axis];
    }
    bytes += inside ? whole.substr(element * itemsize, itemsize) : std::string(itemsize, '#');
  }
  return bytes;
}

// Chunks of one array, each stored in one of the ways there are.
class FakeGrid : public ChunkGrid {
 public:
  FakeGrid(GridLayout layout, std::string fill, const std::string& whole,
           const std::map<std::uint64_t, Kind>& kinds)
      : ChunkGrid(std::move(layout), testing::bytes_of(fill), "fake"), kinds_(kinds) {
    std::string mapped;
    for (std::uint64_t chunk = 0; chunk < chunk_count(); ++chunk) {
      chunks_.push_back(cut_chunk(*this, chunk, whole));
      EXPECT_EQ(chunks_.back().size(), chunk_nbytes(chunk));
      offsets_.push_back(mapped.size());
      mapped += chunks_.back() + "gap";
    }
    source_ = std::make_shared<FakeSource>("mapped", mapped);
  }

  ChunkPlace locate(std::uint64_t chunk) const override {
    ChunkPlace place;
    place.kind = kind(chunk);
    place.extent = {source_.get(), offsets_.at(chunk), chunks_[chunk].size()};
    place.damage = &damage_;
    return place;
  }
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    EXPECT_EQ(kind(chunk), Kind::kDecoded);
    ASSERT_EQ(out.size(), chunks_.at(chunk).size());
    std::memcpy(out.data(), chunks_[chunk].data(), out.size());
  }
  Kind kind(std::uint64_t chunk) const {
    const auto found = kinds_.find(chunk);
    return found != kinds_.end() ? found->second : Kind::kDecoded;
  }

 private:
  std::map<std::uint64_t, Kind> kinds_;
  std::vector<std::string> chunks_;
  std::vector<std::uint64_t> offsets_;
  std::shared_ptr<const FakeSource> source_;
  Damage damage_{Error(ErrorKind::kCorrupt, "damaged"), std::nullopt};
};

DType bytes_type(std::size_t itemsize) { return DType::simple("|V" + std::to_string(itemsize)); }

// Reads `range` plan by plan, as full plans make it necessary.
std::string read_in_parts(const Array& array, ByteRange range) {
  std::string bytes;
  while (!range.empty()) {
    Plan plan;
    array.plan(range, plan);
    EXPECT_GT(plan.nbytes(), 0U);
    EXPECT_LE(plan.pieces().size(), Plan::kMostPieces);
    bytes += read_plan(plan);
    range.begin += plan.nbytes();
  }
  return bytes;
}

TEST(ChunkedArray, AnyCutGivesTheSameBytes) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::size_t rank = random() % 5;
    GridLayout layout;
    layout.dtype = bytes_type(1 + random() % 5);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      layout.shape.push_back(random() % 20 == 0 ? 0 : 1 + random() % (rank < 3 ? 40 : 9));
      // Often a whole axis; sometimes more than that.
      layout.chunk_shape.push_back(
          random() % 3 == 0 ? std::max<std::uint64_t>(layout.shape[axis], 1) : 1 + random() % 12);
    }
    layout.clipped = random() % 2 == 0;
    const std::size_t itemsize = layout.dtype.itemsize;
    std::string whole(*element_count(layout.shape) * itemsize, '\0');
    for (char& c : whole) {
      c = static_cast<char>('a' + random() % 26);
    }
    const std::string fill = std::string("FILLS").substr(0, itemsize);

    // Where a chunk is absent, the fill value is what must come out.
    std::map<std::uint64_t, Kind> kinds;
    const FakeGrid plain(layout, fill, whole, {});
    for (std::uint64_t chunk = 0; chunk < plain.chunk_count(); ++chunk) {
      kinds[chunk] = static_cast<Kind>(random() % 3);
    }
    for (std::uint64_t i = 0; i < whole.size() / itemsize; ++i) {
      std::uint64_t rest = i;
      std::uint64_t chunk = 0;
      std::uint64_t stride = 1;
      for (std::size_t axis = rank; axis-- > 0;) {
        chunk += rest % layout.shape[axis] / layout.chunk_shape[axis] * stride;
        rest /= layout.shape[axis];
        stride *= plain.grid_shape()[axis];
      }
      if (kinds[chunk] == Kind::kAbsent) {
        whole.replace(i * itemsize, itemsize, fill);
      }
    }
    const auto grid = std::make_shared<FakeGrid>(layout, fill, whole, kinds);
    const ArrayPtr array = make_chunked_array(grid);
    ASSERT_EQ(array->nbytes(), whole.size());
    ASSERT_TRUE(read_in_parts(*array, {0, whole.size()}) == whole) << "round " << round;
    for (int i = 0; i < 20 && !whole.empty(); ++i) {
      const std::uint64_t begin = random() % whole.size();
      const std::uint64_t end = begin + 1 + random() % (whole.size() - begin);
      ASSERT_TRUE(read_in_parts(*array, {begin, end}) == whole.substr(begin, end - begin))
          << "round " << round << ": " << shape_text(layout.shape) << " in "
          << shape_text(layout.chunk_shape) << ", " << begin << " to " << end;
    }
  }
}

ArrayPtr array_of(Shape shape, Shape chunk_shape, bool clipped = false) {
  GridLayout layout{DType::simple("<i4"), shape, std::move(chunk_shape), clipped};
  const std::string whole(*element_count(shape) * 4, 'x');
  return make_chunked_array(std::make_shared<FakeGrid>(std::move(layout), "0000", whole,
                                                       std::map<std::uint64_t, Kind>{}));
}

std::size_t count_pieces(const Array& array) {
  Plan plan;
  array.plan({0, array.nbytes()}, plan);
  return plan.pieces().size();
}

TEST(ChunkedArray, AChunkOfWholeRowsIsOnePiece) {
  EXPECT_EQ(count_pieces(*array_of({100}, {30})), 4U);
  EXPECT_EQ(count_pieces(*array_of({100, 3, 2}, {30, 3, 2})), 4U);
  EXPECT_EQ(count_pieces(*array_of({100, 3, 2}, {30, 7, 9}, true)), 4U);
  EXPECT_EQ(count_pieces(*array_of({}, {})), 1U);
}

TEST(ChunkedArray, ElsewhereEachRowOfAChunkIsOne) {
  EXPECT_EQ(count_pieces(*array_of({6, 10}, {3, 5})), 12U);
  // A hanging-over chunk that is stored whole has its rows apart.
  EXPECT_EQ(count_pieces(*array_of({6, 10}, {6, 11})), 6U);
}

TEST(ChunkedArray, ManySmallPiecesComeInSeveralPlans) {
  const ArrayPtr array = array_of({5000, 4}, {1000, 2});
  EXPECT_EQ(count_pieces(*array), Plan::kMostPieces);
  EXPECT_EQ(read_in_parts(*array, {0, array->nbytes()}).size(), array->nbytes());
}

TEST(ChunkedArray, DamageIsThatOfItsChunk) {
  GridLayout layout{DType::simple("|u1"), {6}, {2}, false};
  const ArrayPtr array = make_chunked_array(std::make_shared<FakeGrid>(
      layout, "0", "abcdef", std::map<std::uint64_t, Kind>{{1, Kind::kDamaged}}));
  EXPECT_EQ(testing::read_what_can_be(*array), "ab??ef");
}

TEST(ChunkGrid, RefusesWhatNoFileCouldBe) {
  const auto refused = [](Shape shape, Shape chunk_shape) {
    GridLayout layout{DType::simple("<f8"), std::move(shape), std::move(chunk_shape), false};
    try {
      const FakeGrid grid(layout, "00000000", "", {});
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kTooLarge;
    }
    return false;
  };
  EXPECT_TRUE(refused({std::uint64_t{1} << 61}, {1}));
  EXPECT_TRUE(refused({0, std::uint64_t{1} << 62, 4}, {1, 1, 1}));
  EXPECT_TRUE(refused({0}, {std::uint64_t{1} << 61}));
}

TEST(MappedGrid, MustLieWithinItsSource) {
  const auto source = std::make_shared<FakeSource>("file", std::string(100, 'x'));
  const auto make = [&](std::uint64_t rows, std::uint64_t offset) {
    return make_mapped_grid(DType::simple("<i4"), {rows, 5}, source, offset);
  };
  EXPECT_EQ(testing::read_array(*make_chunked_array(make(5, 0))), source->bytes());
  EXPECT_EQ(testing::read_array(*make_chunked_array(make(0, 100))), "");
  EXPECT_THROW(make(5, 1), Error);
  EXPECT_THROW(make(6, 0), Error);
}

}  // namespace
}  // namespace npyfs
