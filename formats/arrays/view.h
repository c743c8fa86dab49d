// SPDX-License-Identifier: Apache-2.0
//
// A data set as a directory called @... shows it: shuffled, a part of it, padded.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "formats/arrays/dataset.h"
#include "formats/arrays/ragged.h"
#include "formats/arrays/record_order.h"
#include "formats/bytes/error.h"

namespace npyfs {

struct View {
  std::optional<std::uint64_t> shuffle_seed;
  Part part;  // of the shuffled records
  bool pad = false;
};

// "@shuffle=7,part=3of16", "@pad": each word at most once, in any order. Nothing for a name that is
// no view's.
std::optional<View> parse_view(std::string_view name);

// What a view asks for while it is made.
struct ViewContext {
  FindOffsets find_offsets = [](const auto& pair) { return read_offsets(*pair); };
  // A ragged array of a store whose offsets are none, or damaged, is left out if this returns.
  std::function<void(const Error& why)> left_out = [](const Error& why) { throw Error(why); };
  // One line for attributes that are left out.
  std::function<void(const std::string& text)> warn = [](const std::string& /*text*/) {};
};

// The same splits and arrays. It shares what `dataset` is made of and takes no memory for its
// records, but 8 bytes for each of a shuffled ragged array, and what the context's offsets take.
// Ragged arrays of a padded view have x_lengths in place of x_offsets. Shuffled splits have no
// records/. Other arrays of a store are taken by their own rows, each. Attributes that say which
// recordings the rows of x are from follow a part and are not there where rows are shuffled.
Dataset make_view(const Dataset& dataset, const View& view, const ViewContext& context = {});

}  // namespace npyfs
