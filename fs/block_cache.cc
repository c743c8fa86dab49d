// SPDX-License-Identifier: Apache-2.0

#include "fs/block_cache.h"

#include <algorithm>
#include <list>
#include <new>
#include <unordered_map>
#include <utility>

#include "formats/bytes/error.h"
#include "threads/mutex.h"

namespace npyfs {

namespace {

struct Key {
  std::uint64_t serial;  // of the source
  std::uint64_t chunk;
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return std::hash<std::uint64_t>()(key.serial) ^ (key.chunk * 0x9e3779b97f4a7c15);
  }
};

// Whether the same bytes will fail in the same way.
bool is_lasting(ErrorKind kind) {
  return kind == ErrorKind::kCorrupt || kind == ErrorKind::kTooLarge ||
         kind == ErrorKind::kUnsupported;
}

// What a block costs besides its bytes: map node, list node, two control blocks.
constexpr std::uint64_t kBlockOverheadNbytes = 256;

thread_local BlockCache::Asked asked;

}  // namespace

struct BlockCache::Impl {
  Impl(std::uint64_t capacity, const Verifier& v) : capacity_nbytes(capacity), verifier(v) {}

  // One decoding and its outcome. Whoever waits for it holds it, so that the block reaches all of
  // them even where the cache has no room to keep it.
  struct Flight {
    std::shared_ptr<const Block> block;
    std::exception_ptr failure;
    bool done = false;
  };
  struct Entry {
    std::shared_ptr<Flight> flight;
    std::uint64_t nbytes = 0;
    std::list<Key>::iterator at;         // in `spent` or in `recent`
    std::list<Key>::iterator of_source;  // in `by_source`
    std::uint64_t taken_nbytes = 0;
    bool is_spent = false;
    bool is_ahead = false;  // decoded for nobody who has asked for it yet
  };

  using Entries = std::unordered_map<Key, Entry, KeyHash>;

  // A new entry's decoding begins.
  void announce(Entries::iterator at) REQUIRES(mutex) {
    try {
      at->second.flight = std::make_shared<Flight>();
      std::list<Key>& keys = by_source[at->first.serial];
      keys.push_front(at->first);
      at->second.of_source = keys.begin();
    } catch (...) {
      entries.erase(at);
      throw;
    }
  }

  void erase(Entries::iterator at) REQUIRES(mutex) {
    const auto source = by_source.find(at->first.serial);
    source->second.erase(at->second.of_source);
    if (source->second.empty()) {
      by_source.erase(source);
    }
    entries.erase(at);
  }

  // What the cache holds makes room: the kernel bounds a process's mappings in number, too.
  void take_memory(BlockBytes& bytes, std::uint64_t nbytes) {
    try {
      bytes.resize(nbytes);
    } catch (const std::bad_alloc&) {
      drop_all();
      bytes.resize(nbytes);
    }
  }

  void drop_all() {
    const MutexLock lock(mutex);
    while (!spent.empty() || !recent.empty()) {
      drop_oldest();
    }
  }

  void drop_oldest() REQUIRES(mutex) {
    const auto oldest = entries.find((spent.empty() ? recent : spent).back());
    ++counts.evicted;
    drop_block(oldest);
  }

  void drop_block(Entries::iterator at) REQUIRES(mutex) {
    const Entry& entry = at->second;
    counts.ahead_wasted += entry.is_ahead ? 1 : 0;
    held_nbytes -= entry.nbytes;
    spent_nbytes -= entry.is_spent ? entry.nbytes : 0;
    (entry.is_spent ? spent : recent).erase(entry.at);
    erase(at);
  }

  void drop(std::uint64_t serial) {
    const MutexLock lock(mutex);
    const auto source = by_source.find(serial);
    if (source == by_source.end()) {
      return;
    }
    // The list goes with its last key.
    auto key = source->second.begin();
    for (std::size_t left = source->second.size(); left > 0; --left) {
      const auto at = entries.find(*key++);
      if (at->second.flight->block != nullptr) {
        drop_block(at);
      } else if (at->second.flight->done) {
        --failures;
        erase(at);
      }  // else it is being decoded ahead of a reader who has gone, and ages as any other
    }
  }

  void spend(Entry& entry) REQUIRES(mutex) {
    spent.splice(spent.begin(), recent, entry.at);
    entry.is_spent = true;
    spent_nbytes += entry.nbytes;
    // The newest stays: requests come a little out of order.
    while (spent_nbytes > kMostSpentNbytes && spent.size() > 1) {
      drop_oldest();
    }
  }

  void use(Entry& entry) REQUIRES(mutex) {
    recent.splice(recent.begin(), entry.is_spent ? spent : recent, entry.at);
    if (entry.is_spent) {
      entry.is_spent = false;
      spent_nbytes -= entry.nbytes;
    }
  }

  std::shared_ptr<const Block> decode(const ChunkSource& chunks, std::uint64_t chunk) {
    auto block = std::make_shared<Block>();
    take_memory(block->bytes, chunks.chunk_nbytes(chunk));
    decode_block(chunks, chunk, verifier, *block);
    return block;
  }

  void finish(const Key& key, std::shared_ptr<const Block> block) {
    const MutexLock lock(mutex);
    Entry& entry = entries.at(key);
    entry.nbytes = block->bytes.size() + kBlockOverheadNbytes;
    ++counts.loads;
    counts.decoded_nbytes += block->bytes.size();
    entry.flight->block = std::move(block);
    entry.flight->done = true;
    recent.push_front(key);
    entry.at = recent.begin();
    held_nbytes += entry.nbytes;
    // The newest stays, however large: it is about to be asked for again, page by page.
    while (held_nbytes > capacity_nbytes && spent.size() + recent.size() > 1) {
      drop_oldest();
    }
    decoded.notify_all();
  }

  // What lasts is remembered, since the kernel asks again page by page; what may pass is tried
  // again.
  void fail(const Key& key, const std::exception_ptr& why, bool for_good) {
    const MutexLock lock(mutex);
    const auto at = entries.find(key);
    ++counts.failures;
    at->second.is_ahead = false;
    at->second.flight->failure = why;
    at->second.flight->done = true;
    if (for_good && failures < kMostFailures) {
      ++failures;
    } else {
      erase(at);
    }
    decoded.notify_all();
  }

  // What readers in order have left behind: enough for one that follows closely.
  static constexpr std::uint64_t kMostSpentNbytes = std::uint64_t{8} << 20;
  // Beyond this many a failure is found again each time rather than remembered.
  static constexpr std::uint64_t kMostFailures = 10'000;

  const std::uint64_t capacity_nbytes;
  const Verifier& verifier;
  Mutex mutex;  // never held while decoding
  Condition decoded;
  Entries entries GUARDED_BY(mutex);
  // Of all entries.
  std::unordered_map<std::uint64_t, std::list<Key>> by_source GUARDED_BY(mutex);
  // Of the entries with a block, newest first.
  std::list<Key> recent GUARDED_BY(mutex);
  std::list<Key> spent GUARDED_BY(mutex);
  std::uint64_t held_nbytes GUARDED_BY(mutex) = 0;  // of both
  std::uint64_t spent_nbytes GUARDED_BY(mutex) = 0;
  std::uint64_t failures GUARDED_BY(mutex) = 0;
  CacheCounts counts GUARDED_BY(mutex);
};

BlockCache::BlockCache(std::uint64_t capacity_nbytes, const Verifier& verifier)
    : impl_(std::make_unique<Impl>(capacity_nbytes, verifier)) {}

BlockCache::~BlockCache() = default;

std::shared_ptr<const Block> BlockCache::find_or_wait(const ChunkSource& chunks,
                                                      std::uint64_t chunk) {
  const MutexLock lock(impl_->mutex);
  const auto [at, is_new] = impl_->entries.try_emplace(Key{chunks.serial(), chunk});
  if (is_new) {
    impl_->announce(at);
    return nullptr;
  }
  CacheCounts& counts = impl_->counts;
  const std::shared_ptr<Impl::Flight> flight = at->second.flight;
  counts.ahead_used += std::exchange(at->second.is_ahead, false) ? 1 : 0;
  if (flight->block != nullptr) {
    ++counts.hits;
    impl_->use(at->second);
    return flight->block;
  }
  if (!flight->done) {
    ++counts.waits;
    ++asked.decoded;
  }
  while (!flight->done) {
    impl_->decoded.wait(impl_->mutex);
  }
  if (flight->failure != nullptr) {
    std::rethrow_exception(flight->failure);
  }
  return flight->block;
}

std::shared_ptr<const Block> BlockCache::decode(const ChunkSource& chunks, std::uint64_t chunk) {
  const Key key{chunks.serial(), chunk};
  try {
    auto block = impl_->decode(chunks, chunk);
    impl_->finish(key, block);
    return block;
  } catch (const Error& error) {
    impl_->fail(key, std::current_exception(), is_lasting(error.kind()));
    throw;
  } catch (...) {
    impl_->fail(key, std::current_exception(), false);
    throw;
  }
}

std::shared_ptr<const Block> BlockCache::get(const ChunkSource& chunks, std::uint64_t chunk) {
  ++asked.all;
  if (auto block = find_or_wait(chunks, chunk)) {
    block->require_unchanged();
    return block;
  }
  ++asked.decoded;
  return decode(chunks, chunk);
}

void BlockCache::load(const ChunkSource& chunks, std::uint64_t chunk) {
  {
    const MutexLock lock(impl_->mutex);
    const auto [at, is_new] = impl_->entries.try_emplace(Key{chunks.serial(), chunk});
    if (!is_new) {
      return;
    }
    impl_->announce(at);
    at->second.is_ahead = true;
    ++impl_->counts.ahead_issued;
  }
  decode(chunks, chunk);
}

void BlockCache::note_taken(const std::vector<ChunkUse>& uses) {
  const MutexLock lock(impl_->mutex);
  for (const ChunkUse& use : uses) {
    const auto at = impl_->entries.find(Key{use.chunks->serial(), use.chunk});
    if (at == impl_->entries.end() || at->second.flight->block == nullptr || at->second.is_spent) {
      continue;
    }
    Impl::Entry& entry = at->second;
    entry.taken_nbytes += use.nbytes;
    if (entry.taken_nbytes >= entry.flight->block->bytes.size()) {
      impl_->spend(entry);
    }
  }
}

void BlockCache::drop(std::uint64_t serial) { impl_->drop(serial); }

std::uint64_t BlockCache::capacity_nbytes() const { return impl_->capacity_nbytes; }

CacheCounts BlockCache::counts() const {
  const MutexLock lock(impl_->mutex);
  CacheCounts counts = impl_->counts;
  counts.held_nbytes = impl_->held_nbytes;
  counts.capacity_nbytes = impl_->capacity_nbytes;
  return counts;
}

const BlockCache::Asked& BlockCache::asked_by_this_thread() { return asked; }

}  // namespace npyfs
