// SPDX-License-Identifier: Apache-2.0
//
// One-hot labels of every sample, made from intervals when they are asked for.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/chunk_grid.h"

namespace npyfs {

// Which samples are of one class. Built by one thread, then immutable.
class MarkedFrames {
 public:
  struct Interval {
    std::uint64_t begin;
    std::uint64_t end;
  };
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin < end) {
      intervals_.push_back({begin, end});
    }
  }
  // To be called after the last add(): puts what overlaps together.
  void merge();
  // Ascending and disjoint once merged.
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  std::vector<Interval> intervals_;
};

// float32 [frames, classes + 1]. Column 0 is noise, column i + 1 that of classes[i], all merged.
// Classes that overlap share 1, noise is what remains (DAS: normalize_probabilities).
std::shared_ptr<const ChunkGrid> make_label_grid(std::vector<MarkedFrames> classes,
                                                 std::uint64_t frames);

}  // namespace npyfs
