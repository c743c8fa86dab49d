// SPDX-License-Identifier: Apache-2.0

#include "kept/fill_array.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// Blocks that one thread reads before it writes them: one after another, so that neighbours which
// lie in one chunk are decoded by one thread.
constexpr std::uint64_t kMostTaken = 4;
// Blocks that are synced together: few syncs, and little to do again after a kill.
constexpr std::uint64_t kMostUnsynced = 32;
// Another process that writes at the same time is waited for so many times.
constexpr int kMostTries = 50;

template <typename Work>
KeptArray::Outcome try_until_free(const Work& work) {
  KeptArray::Outcome outcome = KeptArray::Outcome::kBusy;
  for (int tries = 0; tries < kMostTries && outcome == KeptArray::Outcome::kBusy; ++tries) {
    outcome = work();
  }
  return outcome;
}

}  // namespace

ArrayFill::ArrayFill(std::shared_ptr<KeptArray> array, ReadArrayFile read,
                     std::function<bool()> is_stopping)
    : array_(std::move(array)), read_(std::move(read)), is_stopping_(std::move(is_stopping)) {}

std::optional<std::uint64_t> ArrayFill::fill_some() noexcept {
  try {
    const std::optional<Taken> taken = take();
    if (!taken) {
      return std::nullopt;
    }
    Batch batch;
    read_blocks(*taken, batch);
    write(batch);
    std::uint64_t nbytes = 0;
    for (std::uint64_t block = taken->first; block < taken->end; ++block) {
      nbytes += array_->block_nbytes(block);
    }
    return nbytes;
  } catch (const std::exception&) {
    end(FillEnd::kFailed);
    return std::nullopt;
  }
}

std::optional<ArrayFill::Taken> ArrayFill::take() {
  const bool is_stopping = is_stopping_();
  const MutexLock lock(mutex_);
  if (is_stopping && !ended_) {
    ended_ = FillEnd::kStopped;
  }
  if (ended_ || next_ >= array_->block_count() || array_->is_complete()) {
    return std::nullopt;
  }
  const Taken taken{next_, std::min(next_ + kMostTaken, array_->block_count())};
  next_ = taken.end;
  return taken;
}

void ArrayFill::read_blocks(const Taken& taken, Batch& batch) {
  for (std::uint64_t block = taken.first; block < taken.end; ++block) {
    if (is_stopping_()) {
      end(FillEnd::kStopped);
      return;
    }
    if (array_->holds(block)) {
      continue;
    }
    Buffer buffer(array_->block_nbytes(block));
    if (!try_read(block, buffer.bytes())) {
      const MutexLock lock(mutex_);
      if (ended_) {
        return;
      }
      continue;
    }
    batch.buffers.push_back(std::move(buffer));
    batch.blocks.push_back({block, batch.buffers.back().bytes()});
  }
}

bool ArrayFill::try_read(std::uint64_t block, std::span<std::byte> out) {
  try {
    read_(block * kKeptBlockNbytes, out);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kChanged) {
      end(FillEnd::kChanged, error.what());
    } else if (is_stopping_()) {
      end(FillEnd::kStopped);
    } else {
      note_unread(block, error.what());
    }
    return false;
  }
}

void ArrayFill::write(const Batch& batch) {
  if (batch.blocks.empty()) {
    return;
  }
  const auto outcome = try_until_free([&] { return array_->add_blocks(batch.blocks); });
  if (outcome != KeptArray::Outcome::kKept) {
    end(outcome);
    return;
  }
  {
    const MutexLock lock(mutex_);
    unsynced_ += batch.blocks.size();
    if (unsynced_ < kMostUnsynced) {
      return;
    }
    unsynced_ = 0;
  }
  publish();
}

void ArrayFill::publish() {
  const auto outcome = try_until_free([&] { return array_->publish(); });
  if (outcome != KeptArray::Outcome::kKept) {
    end(outcome);
  }
}

FillEnd ArrayFill::finish() noexcept {
  // Without any block, too: another one may have written the last of them, and died before it
  // completed the array.
  publish();
  const MutexLock lock(mutex_);
  if (array_->is_complete()) {
    return FillEnd::kComplete;
  }
  if (ended_) {
    return *ended_;
  }
  return unread_ > 0 ? FillEnd::kDamaged : FillEnd::kFailed;
}

void ArrayFill::note_unread(std::uint64_t block, const std::string& why) {
  const MutexLock lock(mutex_);
  // Threads come to them in any order.
  if (unread_ == 0 || block < first_unread_) {
    first_unread_ = block;
    why_ = why;
  }
  ++unread_;
}

void ArrayFill::end(FillEnd end, const std::string& why) {
  const MutexLock lock(mutex_);
  if (!ended_) {
    ended_ = end;
    why_ = why;
  }
}

void ArrayFill::end(KeptArray::Outcome outcome) {
  switch (outcome) {
    case KeptArray::Outcome::kNoRoom:
      return end(FillEnd::kNoRoom);
    case KeptArray::Outcome::kDropped:
      return end(FillEnd::kDropped);
    case KeptArray::Outcome::kBusy:
      return end(FillEnd::kBusy);
    default:
      return end(FillEnd::kFailed);
  }
}

std::uint64_t ArrayFill::unread_blocks() const {
  const MutexLock lock(mutex_);
  return unread_;
}

std::string ArrayFill::why() const {
  const MutexLock lock(mutex_);
  return why_;
}

}  // namespace npyfs
