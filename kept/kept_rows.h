// SPDX-License-Identifier: Apache-2.0
//
// What `npyfs cache` shows and mends: a row for each array in a cache folder.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kept/kept_folder.h"

namespace npyfs {

struct KeptRow {
  std::string name;               // of its files, without extension
  std::string label;              // what a person calls it; may hold any bytes
  std::string key;                // what its bytes depend on: lines "name=value"
  std::uint64_t nbytes = 0;       // of the array file
  std::uint64_t kept_nbytes = 0;  // of these, in blocks that are there
  std::uint64_t disk_nbytes = 0;
  std::uint64_t blocks = 0;       // that it has
  std::uint64_t kept_blocks = 0;  // that are there
  bool is_complete = false;       // there is a plain file NAME.npy
  bool is_open = false;           // a mount, or another program of npyfs, has it open
  std::int64_t used_at_ns = 0;    // since the epoch
  // What is wrong with it: empty if nothing is. For list_kept() that its map cannot be read; for
  // check_kept() what was found, and removed.
  std::string fault;
};

// Which arrays are meant.
using KeptChoice = std::function<bool(const KeptRow& row)>;

// Sorted by last use, the last used first. All throw kIo.
std::vector<KeptRow> list_kept(const KeptFolder& folder);

// Removes arrays. The rows are those that were meant; those that could not be removed have a fault.
std::vector<KeptRow> drop_kept(KeptFolder& folder, const KeptChoice& is_meant);

// Reads what is kept of each array and holds it against its CRCs; what is not good is removed, if
// the folder can be written to. `progress` is called after each of the `rows`, which list_kept()
// returned, and gets the number of bytes that were kept of it.
void check_kept(
    KeptFolder& folder, std::vector<KeptRow>& rows,
    const std::function<void(std::uint64_t nbytes)>& progress = [](std::uint64_t) {});

}  // namespace npyfs
