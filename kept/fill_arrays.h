// SPDX-License-Identifier: Apache-2.0
//
// Fills many kept arrays, in order, by several threads that have nothing better to do.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kept/fill_array.h"
#include "kept/kept_array.h"

namespace npyfs {

// One array to be filled. Both functions are called by any thread.
struct FillTask {
  std::string path;          // what a person calls it
  std::uint64_t nbytes = 0;  // of the array file
  // Null where it cannot be kept now, which the folder has told.
  std::function<std::shared_ptr<KeptArray>()> open;
  ReadArrayFile read;
};

// What has become of one.
struct FillResult {
  std::size_t task = 0;  // its number
  FillEnd end = FillEnd::kStopped;
  bool was_complete = false;        // before
  std::uint64_t unread_blocks = 0;  // see ArrayFill
  std::string why;                  // the same
};

// In bytes of array files.
struct FillState {
  std::uint64_t done_nbytes = 0;
  std::uint64_t found_nbytes = 0;  // of these, in arrays that were complete before
  std::uint64_t all_nbytes = 0;
};

struct FillHooks {
  // Called several times a second; false ends the filling: what was written stays, and no results
  // come of arrays that nobody has begun with.
  std::function<bool(const FillState& state)> progress = [](const FillState&) { return true; };
  // Called once for each array.
  std::function<void(const FillResult& result)> on_end = [](const FillResult&) {};
};

// How much the threads leave to others: all that these want, for work that may take any time, or
// most of it, so that they end soon when they are to.
enum class FillManners { kIdle, kPatient };

// Returns when all that can be is filled. Hooks are called by the caller's thread. The folder being
// full ends all: no further arrays are begun. `threads` of them are made (0: as many as cores), or
// as many as the system gives. Throws what hooks throw, and std::system_error for no thread at all.
void fill_arrays(const std::vector<FillTask>& tasks, unsigned threads, FillManners manners,
                 const FillHooks& hooks);

}  // namespace npyfs
