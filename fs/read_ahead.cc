// SPDX-License-Identifier: Apache-2.0

#include "fs/read_ahead.h"

#include <algorithm>
#include <exception>
#include <system_error>

#include "threads/quiet_thread.h"

namespace npyfs {

namespace {

// The kernel asks ahead of a reader itself, and several threads answer: requests come a little out
// of order.
constexpr std::uint64_t kSlackNbytes = std::uint64_t{512} << 10;
constexpr std::uint64_t kMostShareNbytes = std::uint64_t{64} << 20;
// Reads ahead per thread, each of the best size: enough to keep the thread busy, few enough to fit
// the processor's cache for a local file.
constexpr std::uint64_t kReadsAhead = 32;

// What the file is read from; its first source stands for all.
ReadCost cost_of(const File& file) {
  return file.sources().empty() ? ReadCost() : file.sources().front()->cost();
}

// Also of a file that has gone: its address may be another's now.
bool is_same(const std::weak_ptr<const File>& a, const std::shared_ptr<const File>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

ReadAhead::ReadAhead(BlockCache& cache, unsigned threads)
    : cache_(cache),
      share_nbytes_(std::min(cache.capacity_nbytes() / 4 / kMostReaders, kMostShareNbytes)),
      reads_ahead_(threads * kReadsAhead) {
  threads_.reserve(threads);
  try {
    for (unsigned i = 0; i < threads; ++i) {
      threads_.push_back(start_quiet_thread([this] { run(); }));
    }
  } catch (const std::system_error&) {
    // A limit on threads: readers decode what those that there are leave.
  }
}

ReadAhead::~ReadAhead() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

ReadAhead::Reader& ReadAhead::find_reader(const std::shared_ptr<const File>& file,
                                          ByteRange range) {
  Reader* oldest = &readers_.front();
  for (Reader& reader : readers_) {
    if (is_same(reader.file, file) && range.begin <= reader.end + kSlackNbytes &&
        range.end + kSlackNbytes >= reader.end && range.begin >= reader.begin) {
      reader.end = std::max(reader.end, range.end);
      reader.read_nbytes += range.nbytes();
      return reader;
    }
    if (reader.last_used < oldest->last_used) {
      oldest = &reader;
    }
  }
  *oldest = {file, range.begin, range.end, range.nbytes(), range.end, 0, ++readers_seen_, false};
  return *oldest;
}

void ReadAhead::note_read(const std::shared_ptr<const File>& file, ByteRange range,
                          const std::vector<ChunkUse>& uses, bool kernel_keeps) {
  bool in_order = false;
  {
    const MutexLock lock(mutex_);
    in_order = plan_ahead(file, range);
  }
  if (in_order && kernel_keeps) {
    cache_.note_taken(uses);
  }
}

bool ReadAhead::plan_ahead(const std::shared_ptr<const File>& file, ByteRange range) {
  Reader& reader = find_reader(file, range);
  reader.last_used = ++clock_;
  const std::uint64_t run = reader.end - reader.begin;
  if (run < kLeastRunNbytes || reader.read_nbytes < run - run / 4) {
    return false;
  }
  if (tasks_.size() >= kMostTasks || (reader.has_its_share && reader.end < reader.planned_end)) {
    return true;
  }
  reader.has_its_share = false;
  // The longer the run, the more will be read.
  const std::uint64_t begin = std::max(reader.planned_end, reader.end);
  const std::uint64_t best_nbytes = cost_of(*file).best_nbytes;
  const std::uint64_t ahead = std::min({run, reads_ahead_ * best_nbytes, share_nbytes_});
  const std::uint64_t end = std::min(reader.end + ahead, file->nbytes());
  // In steps of that: fewer tasks, and whole small chunks.
  if (begin >= end || (end - begin < best_nbytes && end < file->nbytes())) {
    return true;
  }
  tasks_.push_back({file, {begin, end}, reader.number});
  reader.planned_end = end;
  wake_.notify_all();
  return true;
}

void ReadAhead::run() {
  while (true) {
    Task task;
    {
      const MutexLock lock(mutex_);
      while (tasks_.empty() && !stop_) {
        wake_.wait(mutex_);
      }
      if (stop_) {
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      if (const std::uint64_t end = decode(task); end < task.range.end) {
        stop_at(end, task);
      }
    } catch (const std::exception&) {
      // Whoever reads it finds the same, and can be told.
    }
  }
}

void ReadAhead::stop_at(std::uint64_t end, const Task& task) {
  const MutexLock lock(mutex_);
  std::erase_if(tasks_, [&](const Task& other) { return other.reader == task.reader; });
  for (Reader& reader : readers_) {
    if (reader.number == task.reader) {
      reader.planned_end = end;
      reader.has_its_share = true;
    }
  }
}

// What a reader has left behind may be held no longer.
bool ReadAhead::has_read(std::uint64_t number, std::uint64_t end) {
  const MutexLock lock(mutex_);
  return std::any_of(readers_.begin(), readers_.end(), [&](const Reader& reader) {
    return reader.number == number && reader.end >= end;
  });
}

std::uint64_t ReadAhead::decode(const Task& task) {
  // Rows that cross several chunks name each of them again and again.
  struct Known {
    const ChunkSource* chunks = nullptr;
    std::uint64_t chunk = 0;
  };
  std::array<Known, 64> known;
  // Rows may cross many chunks of which they take little.
  std::uint64_t left = share_nbytes_;
  Plan plan;
  ByteRange range = task.range;
  bool more = true;
  while (more && !stop_) {
    plan.clear();
    task.file->plan_read(range, plan);
    for (const Piece& piece : plan.pieces()) {
      const std::uint64_t at = range.begin;
      range.begin += piece.nbytes;
      if (stop_ || piece.kind != Piece::Kind::kChunk) {
        continue;
      }
      Known& last = known[piece.chunk % known.size()];
      if ((last.chunks == piece.chunks && last.chunk == piece.chunk) ||
          has_read(task.reader, range.begin)) {
        continue;
      }
      const std::uint64_t nbytes = piece.chunks->chunk_nbytes(piece.chunk);
      if (nbytes > left) {
        return at;
      }
      left -= nbytes;
      last = {piece.chunks, piece.chunk};
      cache_.load(*piece.chunks, piece.chunk);
    }
    more = plan.full() && !range.empty();
  }
  return task.range.end;
}

}  // namespace npyfs
