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

// What make_view asks its caller.
struct ViewContext {
  FindOffsets find_offsets = [](const auto& pair) { return read_offsets(*pair); };
  // Called for a ragged array of a store whose offsets are invalid or damaged. The array is left
  // out if this returns.
  std::function<void(const Error& why)> left_out = [](const Error& why) { throw Error(why); };
  // One line for what else is left out.
  std::function<void(const std::string& text)> warn = [](const std::string& /*text*/) {};
  // Each directory whose arrays have one number of records gets perm.npy: row -> record of
  // `dataset`.
  bool with_permutation = true;
  // Receives the counts for npyfs_part. If null, make_view sets the attribute itself.
  SplitCounts* part_counts = nullptr;
};

// The same splits and arrays, each made anew from its field under the view's map. It shares the
// cache's blocks with `dataset`. It takes 8 bytes for each record of a shuffled ragged array, 16
// for each shard if shards are its blocks, and the memory of the context's offsets; other records
// take none. Ragged arrays of a padded view have x_lengths in place of x_offsets. Shuffled splits
// have no records/. Other arrays of a store are selected row by row, each by its own length.
// Attributes that say which recordings the rows of x come from are adjusted to a part, and left out
// if rows are shuffled.
Dataset make_view(const Dataset& dataset, const View& view, const ViewContext& context = {});

}  // namespace npyfs
