// SPDX-License-Identifier: Apache-2.0

#include "fs/take_figures.h"

namespace npyfs {

namespace {

template <typename Duration>
double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

KeptFigures kept_figures(const KeptArrays& kept) {
  const KeptCounts& counts = kept.counts();
  const FillQueue::Counts queue = kept.queue_counts();
  return {.read_hits = counts.read_hits,
          .read_misses = counts.read_misses,
          .read_nbytes = counts.read_nbytes,
          .blocks_written = counts.blocks_written,
          .blocks_dropped = queue.dropped_blocks,
          .blocks_checked = counts.blocks_checked,
          .blocks_bad = counts.blocks_bad,
          .arrays_completed = counts.arrays_completed,
          .evicted_nbytes = counts.evicted_nbytes,
          .waiting_nbytes = queue.waiting_nbytes};
}

}  // namespace

MountFigures take_figures(const MountedFs& fs, const MountBegin& begin) {
  MountFigures figures;
  figures.version = begin.version;
  figures.mountpoint = begin.mountpoint;
  figures.opening_s = begin.opening_s;
  figures.started_s = to_seconds(begin.time.time_since_epoch());
  figures.uptime_s = to_seconds(std::chrono::steady_clock::now() - begin.steady);
  figures.requests = fs.stats.totals();
  figures.cache = fs.cache.counts();
  if (fs.kept != nullptr) {
    figures.kept = kept_figures(*fs.kept);
  }
  figures.why_not_native = fs.native->why_not();
  return figures;
}

}  // namespace npyfs
