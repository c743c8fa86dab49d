// SPDX-License-Identifier: Apache-2.0

#include "formats/das/label_grid.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace npyfs {

namespace {

// Rows are made this many bytes at a time.
constexpr std::uint64_t kChunkNbytes = std::uint64_t{256} << 10;

class LabelGrid : public DecodedGrid {
 public:
  LabelGrid(GridLayout layout, std::vector<MarkedFrames> classes)
      : DecodedGrid(std::move(layout), {}, "made from intervals"), classes_(std::move(classes)) {}

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const std::uint64_t first = chunk_begin(chunk).front();
    const std::size_t columns = classes_.size() + 1;
    std::vector<float> rows(out.size() / sizeof(float));
    const std::uint64_t count = rows.size() / columns;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      mark(classes_[i], first, count, columns, rows.data() + i + 1);
    }
    for (std::uint64_t row = 0; row < count; ++row) {
      share(std::span(rows).subspan(row * columns, columns));
    }
    std::memcpy(out.data(), rows.data(), out.size());
  }

  bool is_stored() const override { return false; }

 private:
  // Sets the class's element in the rows [first, first + count), `columns` apart.
  static void mark(const MarkedFrames& marked, std::uint64_t first, std::uint64_t count,
                   std::size_t columns, float* element) {
    const auto& all = marked.intervals();
    auto interval = std::partition_point(all.begin(), all.end(),
                                         [&](const auto& one) { return one.end <= first; });
    for (; interval != all.end() && interval->begin < first + count; ++interval) {
      const std::uint64_t end = std::min(interval->end, first + count) - first;
      for (std::uint64_t row = std::max(interval->begin, first) - first; row < end; ++row) {
        element[row * columns] = 1;
      }
    }
  }

  static void share(std::span<float> row) {
    const auto marked = static_cast<double>(std::count(row.begin() + 1, row.end(), 1.0F));
    if (marked == 0) {
      row[0] = 1;
    } else if (marked > 1) {
      for (float& element : row.subspan(1)) {
        element = static_cast<float>(element / marked);
      }
    }
  }

  std::vector<MarkedFrames> classes_;
};

}  // namespace

void MarkedFrames::merge() {
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const Interval& interval : intervals_) {
    if (kept > 0 && interval.begin <= intervals_[kept - 1].end) {
      intervals_[kept - 1].end = std::max(intervals_[kept - 1].end, interval.end);
    } else {
      intervals_[kept++] = interval;
    }
  }
  intervals_.resize(kept);
  intervals_.shrink_to_fit();
}

std::shared_ptr<const ChunkGrid> make_label_grid(std::vector<MarkedFrames> classes,
                                                 std::uint64_t frames) {
  const std::uint64_t columns = classes.size() + 1;
  const std::uint64_t rows = std::max<std::uint64_t>(kChunkNbytes / (columns * sizeof(float)), 1);
  GridLayout layout{DType::simple("<f4"), {frames, columns}, {rows, columns}, true};
  return std::make_shared<LabelGrid>(std::move(layout), std::move(classes));
}

}  // namespace npyfs
