// SPDX-License-Identifier: Apache-2.0
//
// What `npyfs cache` shows and mends: a row for each array in a cache folder.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kept/kept_folder.h"

namespace npyfs {

struct KeptRow {
  std::string name;          // of its files, without extension
  std::string label;         // what a person calls it; may hold any bytes
  std::string key;           // what its bytes depend on: lines "name=value"
  std::uint64_t nbytes = 0;  // of the array file
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

// Sorted by last use, the last used first. All throw kIo.
std::vector<KeptRow> list_kept(const KeptFolder& folder);

// Removes arrays whose name begins with `prefix`; empty: all of them. The rows are those that were
// removed; those that could not be have a fault.
std::vector<KeptRow> drop_kept(KeptFolder& folder, const std::string& prefix = {});

// Reads all that is kept and holds it against its CRCs; what is not good is removed, if the folder
// can be written to.
std::vector<KeptRow> check_kept(KeptFolder& folder);

}  // namespace npyfs
