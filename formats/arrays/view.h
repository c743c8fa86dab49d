// SPDX-License-Identifier: Apache-2.0
//
// A data set as a directory called @... shows it: shuffled, a part of it, padded.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/arrays/dataset.h"
#include "formats/arrays/record_order.h"

namespace npyfs {

struct View {
  std::optional<std::uint64_t> shuffle_seed;
  Part part;  // of the shuffled records
  bool pad = false;
};

// "@shuffle=7,part=3of16", "@pad": each word at most once, in any order. Nothing for a name that is
// no view's.
std::optional<View> parse_view(std::string_view name);

// The same splits and arrays. It shares what `dataset` is made of and takes no memory for its
// records, but 8 bytes for each of a shuffled ragged array. Ragged arrays of a padded view have
// x_lengths in place of x_offsets. Shuffled splits have no records/. Arrays of a store are taken by
// their own rows, each.
Dataset make_view(const Dataset& dataset, const View& view);

}  // namespace npyfs
