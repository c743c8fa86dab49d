// SPDX-License-Identifier: Apache-2.0
//
// A data set as a directory called @... shows it: some of its records, shuffled, padded.

#pragma once

#include <functional>
#include <string>

#include "formats/arrays/dataset.h"
#include "formats/arrays/ragged.h"
#include "formats/bytes/error.h"
#include "formats/tables/view_words.h"

namespace npyfs {

// What a view asks for while it is made.
struct ViewContext {
  FindOffsets find_offsets = [](const auto& pair) { return read_offsets(*pair); };
  // A ragged array of a store whose offsets are none, or damaged, is left out if this returns.
  std::function<void(const Error& why)> left_out = [](const Error& why) { throw Error(why); };
  // One line for what else is left out.
  std::function<void(const std::string& text)> warn = [](const std::string& /*text*/) {};
  // Each directory whose arrays have one number of records gets perm.npy: row -> record of
  // `dataset`.
  bool with_permutation = true;
  // Gets what the attribute npyfs_part is to be made of, for whoever makes it; null: make_view.
  SplitCounts* part_counts = nullptr;
};

// The same splits and arrays, each made anew from its field under the view's map. It shares the
// cache's blocks with `dataset` and takes no memory for its records, but 8 bytes for each of a
// ragged array that is shuffled, 16 for each shard where shards are its blocks, and what the
// context's offsets take. Ragged arrays of a padded view have x_lengths in place of x_offsets.
// Shuffled splits have no records/. Other arrays of a store are taken by their own rows, each.
// Attributes that say which recordings the rows of x are from follow a part and are not there where
// rows are shuffled.
Dataset make_view(const Dataset& dataset, const View& view, const ViewContext& context = {});

}  // namespace npyfs
