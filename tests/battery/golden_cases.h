// SPDX-License-Identifier: Apache-2.0
//
// The golden cases of tests/data: what was mounted, and what the format's reference implementation
// says must come out.

#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/load.h"
#include "fs/fetch.h"
#include "fs/npy_file.h"

namespace npyfs::testing {

struct GoldenCase {
  std::string name;                    // "ffrecord/varlen"
  std::string folder;                  // paths in `arguments` are relative to it
  std::vector<std::string> arguments;  // of `npyfs mount`, without the mount point
  std::string expected;                // folder with <split>/<array>.npy
  std::set<std::string> inexact;       // arrays that need not be the expected ones byte for byte
};

// Cases of every format in the table that succeed, are undamaged and need no file to be made first.
// A format without a single one is an error.
std::vector<GoldenCase> golden_cases();

// A data set loaded as `npyfs mount` would, its warnings dropped; reads as the mount reads.
class OpenDataset {
 public:
  OpenDataset(const std::vector<std::string>& arguments, std::uint64_t cache_nbytes);

  struct File {
    std::string path;  // "train/x.npy"
    std::unique_ptr<NpyFile> npy;
  };
  const std::vector<File>& files() const { return files_; }
  const Dataset& dataset() const { return loaded_->dataset; }

  // [offset, offset + nbytes) of the file, clipped at its end. Any thread. Throws Error.
  std::string read(const NpyFile& file, std::uint64_t offset, std::uint64_t nbytes) const;
  // The stored bytes of a record of the split's first stored unit. Throws Error.
  std::string read_record(const Split& split, std::uint64_t record) const;

 private:
  std::string fetch(ByteRange range, const PlanRead& plan_read) const;

  std::unique_ptr<LoadedDataset> loaded_;
  std::unique_ptr<Fetcher> fetcher_;
  std::vector<File> files_;
};

std::string read_whole_file(const std::string& path);

}  // namespace npyfs::testing
