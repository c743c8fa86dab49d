// SPDX-License-Identifier: Apache-2.0
//
// What .npyfs/stats and .npyfs/metrics say of a mount: all figures with their names, units and
// meanings.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/block_cache.h"
#include "fs/request_stats.h"

namespace npyfs {

// Of the cache folder.
struct KeptFigures {
  std::uint64_t read_hits = 0;
  std::uint64_t read_misses = 0;
  std::uint64_t read_nbytes = 0;
  std::uint64_t blocks_written = 0;
  std::uint64_t blocks_dropped = 0;
  std::uint64_t blocks_checked = 0;
  std::uint64_t blocks_bad = 0;
  std::uint64_t arrays_completed = 0;
  std::uint64_t evicted_nbytes = 0;
  std::uint64_t waiting_nbytes = 0;
};

// Of the kept index, when the data set was opened.
struct IndexFigures {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
};

// How one array file is read.
struct ArrayFigures {
  std::string path;    // "train/x.npy"
  std::string access;  // "native", "kept", "mapped", "decoded"
  // Why the kernel does not read this one; empty where it does, or may read none.
  std::string why_not_native;
};

// The figures of one moment.
struct MountFigures {
  std::string version;
  std::string mountpoint;
  double started_s = 0;  // since 1970
  double uptime_s = 0;
  double opening_s = 0;  // how long it took to find out what there is
  RequestTotals requests;
  CacheCounts cache;
  std::optional<IndexFigures> index;  // nothing without one
  std::optional<KeptFigures> kept;    // nothing without a cache folder
  std::string why_not_native;         // why the kernel reads no file; empty: it may
  // Of the mount's own tree, in its order; as many as kMostArrays.
  std::vector<ArrayFigures> arrays;
  std::uint64_t arrays_left_out = 0;

  static constexpr std::size_t kMostArrays = 1000;
};

// JSON, one object. SEMANTICS.md lists its fields.
std::string stats_json(const MountFigures& figures);

// Prometheus' text format, version 0.0.4.
std::string stats_metrics(const MountFigures& figures);

}  // namespace npyfs
