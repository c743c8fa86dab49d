// SPDX-License-Identifier: Apache-2.0

#include "kept/kept_array.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "formats/bytes/block_memory.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/crc.h"
#include "formats/bytes/error.h"
#include "kept/kept_folder.h"

namespace npyfs {

namespace {

constexpr std::int64_t kUseIntervalS = 60;

// Cheaper than a system call: it is asked by every read.
std::int64_t coarse_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec + 1;  // never 0
}

// Never 0.
std::uint64_t most_of(std::uint64_t nbytes) {
  return std::max<std::uint64_t>(1, nbytes - nbytes / 4);
}

void count(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) {
  counter.fetch_add(more, std::memory_order_relaxed);
}

}  // namespace

KeptArray::KeptArray(std::shared_ptr<KeptFolder> folder, BlockMap map, DiskFile data, bool is_part,
                     std::vector<std::byte> head)
    : folder_(std::move(folder)),
      map_(std::move(map)),
      name_(map_.key().name()),
      data_(std::move(data)),
      head_(std::move(head)),
      trust_(map_.block_count(), map_.generation()),
      is_part_(is_part) {
  map_.file().try_share(DiskFile::Lock::kUser);
  if (!find_completed()) {
    const std::vector<bool> there = map_.blocks();
    const auto count = static_cast<std::uint64_t>(std::count(there.begin(), there.end(), true));
    asked_nbytes_ = std::min(count * kKeptBlockNbytes, most_of(nbytes()) - 1);
  }
}

KeptArray::~KeptArray() = default;

bool KeptArray::read(std::uint64_t offset, std::span<std::byte> out) const noexcept {
  const WantedRange range{offset, out};
  return read({&range, 1});
}

bool KeptArray::read(std::span<const WantedRange> ranges) const noexcept {
  std::uint64_t nbytes = 0;
  for (const WantedRange& range : ranges) {
    if (!lies_within(range.offset, range.out.size(), this->nbytes())) {
      return false;
    }
    nbytes += range.out.size();
  }
  bool is_served = false;
  try {
    // Where blocks went away meanwhile, those that are wanted may still be there.
    const std::uint64_t generation = trust_.generation();
    is_served = try_read(ranges) || (trust_.generation() != generation && try_read(ranges));
  } catch (const Error& error) {
    note(error);
  } catch (const std::exception&) {
    // No memory to check a block: a miss.
  }
  KeptCounts& counts = folder_->counts();
  count(is_served ? counts.read_hits : counts.read_misses);
  count(counts.read_nbytes, is_served ? nbytes : 0);
  if (is_served) {
    note_use();
  }
  return is_served;
}

bool KeptArray::can_read(std::uint64_t offset, std::uint64_t nbytes) const noexcept {
  try {
    return lies_within(offset, nbytes, this->nbytes()) &&
           (is_complete() || believes(offset, nbytes));
  } catch (const Error& error) {
    note(error);
  } catch (const std::exception&) {
    // No memory to check a block.
  }
  return false;
}

// Whether all blocks of the range are.
bool KeptArray::believes(std::uint64_t offset, std::uint64_t nbytes) const {
  const std::uint64_t end = offset + nbytes;
  std::uint64_t block = offset / kKeptBlockNbytes;
  for (; nbytes > 0 && block * kKeptBlockNbytes < end; ++block) {
    if (!is_believed(block)) {
      return false;
    }
  }
  return true;
}

bool KeptArray::read_file(std::span<const WantedRange> ranges) const {
  if (ranges.size() == 1) {
    return data_.read(ranges[0].offset, ranges[0].out);
  }
  // Neighbours in the file, wherever their bytes are to go.
  std::vector<WantedRange> sorted(ranges.begin(), ranges.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const WantedRange& a, const WantedRange& b) { return a.offset < b.offset; });
  bool all_are_there = true;
  read_neighbours(sorted, ReadCost(), [&](std::uint64_t offset, std::span<const iovec> parts) {
    all_are_there = all_are_there && data_.read_parts(offset, parts);
  });
  return all_are_there;
}

bool KeptArray::try_read(std::span<const WantedRange> ranges) const {
  if (is_complete()) {
    return read_file(ranges);
  }
  const std::uint64_t generation = trust_.generation();
  for (const WantedRange& range : ranges) {
    if (!believes(range.offset, range.out.size())) {
      return false;
    }
  }
  if (!read_file(ranges)) {
    return false;
  }
  // A block that went away while it was read reads as zeros.
  if (map_.generation() != generation) {
    follow_generation();
    return false;
  }
  return true;
}

bool KeptArray::has(std::uint64_t block) const noexcept {
  return is_complete() || trust_.has(block);
}

void KeptArray::follow_generation() const { trust_.forget(map_.generation()); }

bool KeptArray::is_believed(std::uint64_t block) const {
  return trust_.has(block) || try_believe(block);
}

bool KeptArray::try_believe(std::uint64_t block) const {
  const std::uint64_t generation = trust_.generation();
  const std::optional<std::uint32_t> crc = map_.crc_of(block);
  if (!crc) {
    return false;
  }
  if (trust_.is_bad(block)) {
    if (map_.generation() != generation) {
      follow_generation();
    }
    return false;
  }
  Buffer buffer(block_nbytes(block));
  const bool is_good =
      data_.read(block * kKeptBlockNbytes, buffer.bytes()) && crc32c(buffer.bytes()) == *crc;
  if (map_.generation() != generation) {
    follow_generation();
    return false;
  }
  trust_.note(block, is_good, generation);
  count(folder_->counts().blocks_checked);
  count(folder_->counts().blocks_bad, is_good ? 0 : 1);
  return is_good;
}

bool KeptArray::note_asked(std::uint64_t more) noexcept {
  const std::uint64_t most = most_of(nbytes());
  const std::uint64_t before = asked_nbytes_.fetch_add(more, std::memory_order_relaxed);
  return before < most && before + more >= most;
}

void KeptArray::note_use() const noexcept {
  const std::int64_t now = coarse_seconds();
  const std::int64_t before = used_at_s_.load(std::memory_order_relaxed);
  if (before != 0 && now - before < kUseIntervalS) {
    return;
  }
  used_at_s_.store(now, std::memory_order_relaxed);
  if (!folder_->is_read_only()) {
    // The map's modification time is when its array was last used; no harm if that fails.
    (void)::futimens(map_.file().descriptor(), nullptr);
  }
}

void KeptArray::refresh() noexcept {
  if (is_complete()) {
    return;
  }
  try {
    follow_generation();
    find_completed();
  } catch (const Error& error) {
    note(error);
  } catch (const std::exception&) {
    // Another time.
  }
}

// Takes the file under its final name, if it is the one whose blocks are here and nothing was done
// to it since it was stamped.
bool KeptArray::find_completed() {
  const MutexLock lock(completing_);
  if (is_complete() || is_spoilt_) {
    return is_complete();
  }
  const std::optional<FileStamp> stamp = map_.stamp();
  if (!stamp || !folder_->disk().leads_to(complete_name(name_), data_)) {
    return false;
  }
  is_part_ = false;
  DiskFile file = folder_->disk().open(complete_name(name_), O_RDONLY);
  if (!is_same_file(file.look(), data_.look()) || stamp_of(file.look()) != *stamp ||
      stamp->nbytes != nbytes()) {
    return false;
  }
  complete_ = std::move(file);
  complete_fd_ = complete_.descriptor();
  return true;
}

// Whether the map and the data are still those under the array's names, and in part.
KeptArray::Start KeptArray::start_writing(const WriterLock& lock) {
  if (!lock) {
    return Start::kBusy;
  }
  const DiskFolder& disk = folder_->disk();
  if (!disk.leads_to(map_name(name_), map_.file())) {
    is_dropped_ = true;
    return Start::kOver;
  }
  follow_generation();
  if (find_completed() || disk.leads_to(complete_name(name_), data_)) {
    is_part_ = false;
    return Start::kOver;
  }
  if (!disk.leads_to(part_name(name_), data_)) {
    is_dropped_ = true;
    return Start::kOver;
  }
  return Start::kReady;
}

KeptArray::Outcome KeptArray::outcome_of(Start start) const {
  if (start == Start::kBusy) {
    return Outcome::kBusy;
  }
  if (is_dropped()) {
    return Outcome::kDropped;
  }
  return is_complete() ? Outcome::kKept : Outcome::kFailed;
}

// What `work` returns, where anything can be written at all.
template <typename Work>
KeptArray::Outcome KeptArray::at_work(const Work& work) noexcept {
  if (is_complete()) {
    return Outcome::kKept;
  }
  if (is_dropped()) {
    return Outcome::kDropped;
  }
  if (folder_->is_read_only() || folder_->is_paused()) {
    return Outcome::kFailed;
  }
  try {
    return work();
  } catch (const Error& error) {
    note(error);
    return error.to_errno() == ENOSPC || error.to_errno() == EDQUOT ? Outcome::kNoRoom
                                                                    : Outcome::kFailed;
  } catch (const std::exception&) {
    return Outcome::kFailed;
  }
}

KeptArray::Outcome KeptArray::write_blocks(std::span<const BlockBytes> blocks) noexcept {
  const Outcome outcome = add_blocks(blocks);
  return outcome == Outcome::kKept ? publish() : outcome;
}

KeptArray::Outcome KeptArray::add_blocks(std::span<const BlockBytes> blocks) noexcept {
  return at_work([&] {
    std::uint64_t all_nbytes = 0;
    for (const BlockBytes& block : blocks) {
      all_nbytes += block.bytes.size();
    }
    if (!folder_->make_room(all_nbytes, name_)) {
      return Outcome::kNoRoom;
    }
    const MutexLock lock(writing_);
    const WriterLock file_lock(map_.file(), folder_->options().lock_wait);
    const Start start = start_writing(file_lock);
    if (start != Start::kReady) {
      return outcome_of(start);
    }
    add_locked(blocks);
    return Outcome::kKept;
  });
}

// Whoever evicts punches what the map does not speak of, too.
void KeptArray::follow_pending() {
  if (pending_generation_ != trust_.generation()) {
    pending_generation_ = trust_.generation();
    pending_.clear();
  }
}

void KeptArray::add_locked(std::span<const BlockBytes> blocks) {
  follow_pending();
  std::vector<BlockBytes> wanted;
  bool replaces = false;
  for (const BlockBytes& block : blocks) {
    if (!pending_.contains(block.block) && !is_believed(block.block)) {
      wanted.push_back(block);
      if (map_.crc_of(block.block)) {
        replaces = true;
        map_.clear(block.block);
      }
    }
  }
  if (replaces) {
    // Others remember that the block was bad.
    map_.set_generation(map_.generation() + 1);
    follow_generation();
    follow_pending();
  }
  for (const BlockBytes& block : wanted) {
    try {
      data_.write(block.block * kKeptBlockNbytes, block.bytes);
      pending_[block.block] = crc32c(block.bytes);
    } catch (const Error&) {
      // What the map will not speak of must not take room.
      data_.punch(block.block * kKeptBlockNbytes, kKeptBlockNbytes);
      throw;
    }
  }
}

KeptArray::Outcome KeptArray::publish() noexcept {
  return at_work([&] {
    std::map<std::uint64_t, std::uint32_t> synced;
    {
      const MutexLock lock(writing_);
      synced = pending_;
    }
    try {
      if (!synced.empty()) {
        data_.sync_data();
      }
    } catch (const Error&) {
      // Which of them reached the disk is not known, nor will be: the kernel tells it once.
      give_up_pending();
      throw;
    }
    return publish_synced(synced);
  });
}

KeptArray::Outcome KeptArray::publish_synced(const std::map<std::uint64_t, std::uint32_t>& synced) {
  const MutexLock lock(writing_);
  const WriterLock file_lock(map_.file(), folder_->options().lock_wait);
  const Start start = start_writing(file_lock);
  if (start != Start::kReady) {
    if (start == Start::kOver) {
      pending_.clear();
    }
    return outcome_of(start);
  }
  follow_pending();
  bool all_are_there = true;
  std::uint64_t published = 0;
  for (const auto& [block, crc] : synced) {
    const auto pending = pending_.find(block);
    if (pending == pending_.end() || pending->second != crc) {
      all_are_there = all_are_there && trust_.has(block);
      continue;
    }
    map_.set(block, crc);
    trust_.note(block, true, pending_generation_);
    pending_.erase(pending);
    ++published;
  }
  count(folder_->counts().blocks_written, published);
  complete_if_all_are_there();
  return all_are_there ? Outcome::kKept : Outcome::kNoRoom;
}

void KeptArray::give_up_pending() noexcept {
  try {
    const MutexLock lock(writing_);
    const WriterLock file_lock(map_.file(), folder_->options().lock_wait);
    if (start_writing(file_lock) == Start::kReady) {
      follow_pending();
      for (const auto& [block, crc] : pending_) {
        data_.punch(block * kKeptBlockNbytes, kKeptBlockNbytes);
      }
    }
    pending_.clear();
  } catch (const std::exception&) {
    // Whoever evicts from this array gives their room back.
  }
}

// The writer's lock is held.
void KeptArray::complete_if_all_are_there() {
  if (is_complete()) {
    return;
  }
  if (hint_generation_ != trust_.generation()) {
    hint_generation_ = trust_.generation();
    first_absent_ = 0;
  }
  first_absent_ = map_.first_absent(first_absent_).value_or(block_count());
  if (first_absent_ < block_count()) {
    return;
  }
  first_absent_ = 0;
  if (!check_blocks()) {
    return;
  }
  const DiskFolder& disk = folder_->disk();
  // Against slips of whoever looks into the folder; the owner may still write if he insists.
  (void)::fchmod(data_.descriptor(), 0400);
  data_.sync();
  map_.file().sync_data();
  disk.rename(part_name(name_), complete_name(name_));
  disk.sync();
  count(folder_->counts().arrays_completed);
  stamp_file(disk.open(complete_name(name_), O_RDONLY));
}

// All blocks of the file were found good, under the writer's lock.
void KeptArray::stamp_file(const DiskFile& file) {
  is_part_ = false;
  map_.set_stamp(stamp_of(file.look()));
  map_.file().sync_data();
  find_completed();
}

// Whether all that the map speaks of is good. What is not is taken out of the map of an array that
// may be written to.
bool KeptArray::check_blocks() {
  bool all_are_good = true;
  const std::vector<bool> there = map_.blocks();
  for (std::uint64_t block = 0; block < there.size(); ++block) {
    if (there[block] && !is_believed(block)) {
      all_are_good = false;
      if (is_part_ && !folder_->is_read_only()) {
        map_.clear(block);
      }
    }
  }
  return all_are_good;
}

bool KeptArray::holds(std::uint64_t block) noexcept {
  try {
    follow_generation();
    return is_complete() || is_believed(block);
  } catch (const Error& error) {
    note(error);
  } catch (const std::exception&) {
    // No memory to check it.
  }
  return false;
}

bool KeptArray::check() noexcept {
  try {
    if (folder_->is_read_only()) {
      return check_blocks();
    }
    const MutexLock lock(writing_);
    const WriterLock file_lock(map_.file(), folder_->options().lock_wait);
    const Start start = start_writing(file_lock);
    if (start == Start::kBusy || is_dropped()) {
      return true;
    }
    if (start == Start::kReady) {
      first_absent_ = 0;
      const bool all_are_good = check_blocks();
      complete_if_all_are_there();
      return all_are_good;
    }
    if (check_blocks() && !map_.first_absent(0)) {
      stamp_file(folder_->disk().open(complete_name(name_), O_RDONLY));
      return true;
    }
    // The kernel may have been given this file: it is removed, never mended.
    forsake();
    remove_kept_files(folder_->disk(), name_);
    return false;
  } catch (const Error& error) {
    note(error);
  } catch (const std::exception&) {
    // Another time.
  }
  return true;
}

// From now on reads look at each block's CRC again.
void KeptArray::forsake() {
  const MutexLock lock(completing_);
  is_spoilt_ = true;
  is_dropped_ = true;
  complete_fd_ = -1;
}

// A map that was shortened, or a link in the place of a file, is no fault of the disk.
void KeptArray::note(const Error& error) const noexcept {
  if (error.kind() == ErrorKind::kIo) {
    folder_->note_failure(error);
  } else {
    is_dropped_ = true;
  }
}

}  // namespace npyfs
