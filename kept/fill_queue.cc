// SPDX-License-Identifier: Apache-2.0

#include "kept/fill_queue.h"

#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <utility>

#include "threads/idle_thread.h"
#include "threads/quiet_thread.h"

namespace npyfs {

namespace {

// Blocks of one array that are written under one lock.
constexpr std::size_t kMostInBatch = 16;
// What was written waits for another process's lock so many times; it is lost then.
constexpr int kMostTries = 10;

// Calls use(block, offset within the block, offset within the range, nbytes) for each block that
// the range touches; ends where it returns false.
template <typename Use>
void for_each_block(std::uint64_t offset, std::uint64_t nbytes, const Use& use) {
  for (std::uint64_t done = 0; done < nbytes;) {
    const std::uint64_t within = (offset + done) % kKeptBlockNbytes;
    const std::uint64_t n = std::min(nbytes - done, kKeptBlockNbytes - within);
    if (!use((offset + done) / kKeptBlockNbytes, within, done, n)) {
      return;
    }
    done += n;
  }
}

}  // namespace

FillQueue::FillQueue(FillOptions options)
    : options_(std::move(options)), halves_(options_.most_half_nbytes) {
  writer_ = start_quiet_thread([this] { write_all(); });
  try {
    syncer_ = start_quiet_thread([this] { sync_all(); });
  } catch (...) {
    {
      const MutexLock lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    writer_.join();
    throw;
  }
}

FillQueue::~FillQueue() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
    to_check_.clear();
  }
  changed_.notify_all();
  drain();
  writer_.join();
  syncer_.join();
}

void FillQueue::push(const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
                     std::span<const std::byte> bytes) noexcept {
  if (array->is_dropped() || array->is_complete() || array->needs_check() ||
      offset > array->nbytes() || bytes.size() > array->nbytes() - offset) {
    return;
  }
  try {
    for_each_block(
        offset, bytes.size(),
        [&](std::uint64_t block, std::uint64_t within, std::uint64_t done, std::uint64_t n) {
          if (!has(array, block * kKeptBlockNbytes + within, n)) {
            auto full = halves_.add(array, block, within, bytes.subspan(done, n));
            if (full) {
              add_waiting(std::move(*full));
            }
          }
          return true;
        });
  } catch (const std::exception&) {
    // No memory: these bytes are not kept.
  }
}

bool FillQueue::has(const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
                    std::uint64_t nbytes) const noexcept {
  bool all = true;
  for_each_block(offset, nbytes,
                 [&](std::uint64_t block, std::uint64_t, std::uint64_t, std::uint64_t) {
                   if (!array->has(block)) {
                     const MutexLock lock(mutex_);
                     all = on_their_way_.contains({array.get(), block});
                   }
                   return all;
                 });
  return all;
}

void FillQueue::add_waiting(FullBlock full) {
  const std::uint64_t nbytes = full.bytes.bytes().size();
  {
    const MutexLock lock(mutex_);
    if (waiting_nbytes_ + nbytes > options_.most_waiting_nbytes) {
      ++dropped_;
      return;
    }
    const auto [on_its_way, is_new] = on_their_way_.insert({full.array.get(), full.block});
    if (!is_new) {
      return;
    }
    try {
      waiting_.push_back(std::move(full));
    } catch (const std::bad_alloc&) {
      on_their_way_.erase(on_its_way);
      throw;
    }
    waiting_nbytes_ += nbytes;
  }
  changed_.notify_all();
}

void FillQueue::check_later(const std::shared_ptr<KeptArray>& array) noexcept {
  try {
    const MutexLock lock(mutex_);
    to_check_.push_back(array);
  } catch (const std::exception&) {
    return;
  }
  changed_.notify_all();
}

// One thread at a time, so that one alone finds that an array has become complete.
bool FillQueue::can_sync() const {
  return !is_syncing_ && (!unsynced_.empty() || !to_check_.empty());
}

bool FillQueue::is_idle() const {
  return waiting_.empty() && unsynced_.empty() && to_check_.empty() && writing_ == 0 &&
         !is_syncing_;
}

void FillQueue::drain() {
  while (true) {
    if (write_some() || sync_some()) {
      continue;
    }
    const MutexLock lock(mutex_);
    if (is_idle()) {
      return;
    }
    if (waiting_.empty() && !can_sync()) {
      changed_.wait(mutex_);
    }
  }
}

FillQueue::Counts FillQueue::counts() const {
  const MutexLock lock(mutex_);
  return {waiting_nbytes_, dropped_ + halves_.dropped()};
}

// The oldest one, and others of the same array. The threads take no memory that there may not be.
std::span<FullBlock> FillQueue::take_blocks(std::span<FullBlock> into) {
  std::size_t taken = 0;
  const KeptArray* const array = waiting_.front().array.get();
  for (auto at = waiting_.begin(); at != waiting_.end() && taken < into.size();) {
    if (at->array.get() == array) {
      into[taken++] = std::move(*at);
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
  return into.first(taken);
}

void FillQueue::write_all() {
  become_patient_thread();
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty()) {
        if (is_ending_) {
          return;
        }
        changed_.wait(mutex_);
      }
    }
    write_some();
  }
}

// False: nothing waits to be written.
bool FillQueue::write_some() {
  std::array<FullBlock, kMostInBatch> taken;
  std::span<FullBlock> blocks;
  {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) {
      return false;
    }
    blocks = take_blocks(taken);
    ++writing_;
  }
  write(blocks);
  {
    const MutexLock lock(mutex_);
    --writing_;
  }
  changed_.notify_all();
  return true;
}

void FillQueue::write(std::span<FullBlock> blocks) {
  std::sort(blocks.begin(), blocks.end(),
            [](const FullBlock& a, const FullBlock& b) { return a.block < b.block; });
  std::array<KeptArray::BlockBytes, kMostInBatch> parts;
  std::uint64_t nbytes = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    parts[i] = {blocks[i].block, std::as_const(blocks[i].bytes).bytes()};
    nbytes += parts[i].bytes.size();
  }
  const std::shared_ptr<KeptArray>& array = blocks.front().array;
  const auto outcome = array->add_blocks(std::span(parts).first(blocks.size()));
  const MutexLock lock(mutex_);
  waiting_nbytes_ -= nbytes;
  for (const FullBlock& full : blocks) {
    if (outcome != KeptArray::Outcome::kKept || !note_unsynced(full)) {
      on_their_way_.erase({array.get(), full.block});
      ++dropped_;
    }
  }
}

bool FillQueue::note_unsynced(const FullBlock& full) {
  try {
    unsynced_[full.array].push_back(full.block);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void FillQueue::sync_all() {
  become_patient_thread();
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (!can_sync()) {
        if (is_ending_ && is_idle()) {
          return;
        }
        changed_.wait(mutex_);
      }
    }
    sync_some();
  }
}

// False: there is nothing to sync and nothing to check, or another thread is at it.
bool FillQueue::sync_some() {
  std::shared_ptr<KeptArray> array;
  Keys blocks;
  {
    const MutexLock lock(mutex_);
    if (!can_sync()) {
      return false;
    }
    if (!unsynced_.empty()) {
      auto first = unsynced_.extract(unsynced_.begin());
      array = first.key();
      blocks = std::move(first.mapped());
    } else {
      array = std::move(to_check_.front());
      to_check_.pop_front();
    }
    is_syncing_ = true;
  }
  const bool was_complete = array->is_complete();
  if (blocks.empty()) {
    array->check();
  } else {
    sync(array, blocks);
  }
  if (!was_complete && array->is_complete()) {
    try {
      options_.on_complete(array);
    } catch (const std::exception&) {
      // Whoever listens could not: the array is found complete when it is opened again.
    }
  }
  array.reset();
  {
    const MutexLock lock(mutex_);
    is_syncing_ = false;
  }
  changed_.notify_all();
  return true;
}

void FillQueue::sync(const std::shared_ptr<KeptArray>& array, const Keys& blocks) {
  KeptArray::Outcome outcome = KeptArray::Outcome::kBusy;
  for (int tries = 0; tries < kMostTries && outcome == KeptArray::Outcome::kBusy; ++tries) {
    outcome = array->publish();
  }
  const MutexLock lock(mutex_);
  for (const std::uint64_t block : blocks) {
    on_their_way_.erase({array.get(), block});
    dropped_ += outcome == KeptArray::Outcome::kKept ? 0 : 1;
  }
}

}  // namespace npyfs
