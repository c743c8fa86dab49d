// SPDX-License-Identifier: Apache-2.0

#include "fs/take_figures.h"

#include <fmt/format.h>

#include "fs/fill_tasks.h"
#include "fs/npy_file.h"

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

constexpr const char* kNotOpened = "it has not been opened yet";

std::string blocks_text(const KeptArray& kept) {
  std::uint64_t there = 0;
  for (std::uint64_t block = 0; block < kept.block_count(); ++block) {
    there += kept.has(block) ? 1 : 0;
  }
  return fmt::format("{} of its {} blocks of 2 MiB are kept", there, kept.block_count());
}

// Of an array that the kernel does not read, though it may read others.
std::string why_not_native(const MountedFs& fs, const NpyFile& file, const KeptArrays::Seen& kept) {
  if (file.is_source()) {
    return kNotOpened;
  }
  if (fs.kept == nullptr) {
    return "its bytes are not a file of their own, as there is no --cache-dir";
  }
  if (const auto not_kept = why_not_kept(file)) {
    return "it is not kept: " + not_kept->why;
  }
  if (kept.is_complete) {
    return "it has not been opened since it was completed";
  }
  return kept.array != nullptr ? blocks_text(*kept.array) : kNotOpened;
}

ArrayFigures array_figures(const MountedFs& fs, Ino ino, const std::string& path,
                           const NpyFile& file) {
  ArrayFigures figures{path, std::string(access_word(file.array())), ""};
  const auto known = fs.native->find_known(fs.tree.known_number(ino));
  if (known && known->is_native) {
    figures.access = "native";
    return figures;
  }
  const KeptArrays::Seen kept = fs.kept != nullptr ? fs.kept->last_seen(ino) : KeptArrays::Seen();
  if (kept.is_complete) {
    figures.access = "kept";
  }
  if (fs.native->are_possible()) {
    figures.why_not_native =
        known && !known->why_not.empty() ? known->why_not : why_not_native(fs, file, kept);
  }
  return figures;
}

void add_arrays(const MountedFs& fs, MountFigures& figures) {
  for_each_array_file(
      fs.tree, [&](Ino ino, const std::string& path, const std::shared_ptr<const File>& file) {
        if (!fs.tree.is_plain(ino)) {
          return;
        }
        if (figures.arrays.size() == MountFigures::kMostArrays) {
          ++figures.arrays_left_out;
          return;
        }
        figures.arrays.push_back(array_figures(fs, ino, path, dynamic_cast<const NpyFile&>(*file)));
      });
}

}  // namespace

MountFigures take_figures(const MountedFs& fs, const MountBegin& begin) {
  MountFigures figures;
  figures.version = begin.version;
  figures.mountpoint = begin.mountpoint;
  figures.opening_s = begin.opening_s;
  figures.index = begin.index;
  figures.started_s = to_seconds(begin.time.time_since_epoch());
  figures.uptime_s = to_seconds(std::chrono::steady_clock::now() - begin.steady);
  figures.requests = fs.stats.totals();
  figures.cache = fs.cache.counts();
  if (fs.kept != nullptr) {
    figures.kept = kept_figures(*fs.kept);
  }
  figures.why_not_native = fs.native->why_not();
  add_arrays(fs, figures);
  return figures;
}

}  // namespace npyfs
