// SPDX-License-Identifier: Apache-2.0

#include "fs/block_cache.h"

#include <list>
#include <unordered_map>

#include "formats/bytes/error.h"
#include "fs/mutex.h"
#include "fs/verified_records.h"

namespace npyfs {

namespace {

struct Key {
  const ChunkSource* chunks;
  std::uint64_t chunk;
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return std::hash<const void*>()(key.chunks) ^ (key.chunk * 0x9e3779b97f4a7c15);
  }
};

class Decoding : public DecodeContext {
 public:
  Decoding(Block& block, VerifiedRecords& verified) : block_(block), verified_(verified) {}

  void require_intact(const RecordTable& table, std::uint64_t record) override {
    verified_.require_intact({&table, record, 1});
  }
  void mark_damaged(ByteRange range, std::exception_ptr why) override {
    block_.damage.push_back({range, std::move(why)});
  }

 private:
  Block& block_;
  VerifiedRecords& verified_;
};

// What a block costs besides its bytes: map node, list node, two control blocks.
constexpr std::uint64_t kBlockOverheadNbytes = 256;

}  // namespace

struct BlockCache::Impl {
  Impl(std::uint64_t capacity, VerifiedRecords& v) : capacity_nbytes(capacity), verified(v) {}

  // How a decoding ended. Who waits for it holds it, so that it reaches all of them even if the
  // entry is gone by then.
  struct Outcome {
    bool known = false;
    std::shared_ptr<const Block> block;  // null after a failure
    std::exception_ptr failure;
  };
  struct Entry {
    std::shared_ptr<Outcome> outcome;
    std::uint64_t nbytes = 0;
    std::list<Key>::iterator used;  // once there is a block
  };

  std::shared_ptr<const Block> decode(const Key& key) {
    const SourceWatch watch;
    auto block = std::make_shared<Block>();
    block->bytes.resize(key.chunks->chunk_nbytes(key.chunk));
    Decoding context(*block, verified);
    key.chunks->decode(key.chunk, block->bytes, context);
    watch.check_unchanged();
    return block;
  }

  void finish(const Key& key, std::shared_ptr<const Block> block) {
    const MutexLock lock(mutex);
    Entry& entry = entries.at(key);
    entry.nbytes = block->bytes.size() + kBlockOverheadNbytes;
    entry.outcome->block = std::move(block);
    entry.outcome->known = true;
    recent.push_front(key);
    entry.used = recent.begin();
    held_nbytes += entry.nbytes;
    while (held_nbytes > capacity_nbytes && !recent.empty()) {
      const auto oldest = entries.find(recent.back());
      held_nbytes -= oldest->second.nbytes;
      entries.erase(oldest);
      recent.pop_back();
    }
    decoded.notify_all();
  }

  // Damage is remembered, since the kernel asks again page by page; what may pass is tried again.
  void fail(const Key& key, const std::exception_ptr& why, bool for_good) {
    const MutexLock lock(mutex);
    const auto entry = entries.find(key);
    entry->second.outcome->failure = why;
    entry->second.outcome->known = true;
    if (!for_good) {
      entries.erase(entry);
    }
    decoded.notify_all();
  }

  const std::uint64_t capacity_nbytes;
  VerifiedRecords& verified;
  Mutex mutex;  // never held while decoding
  Condition decoded;
  std::unordered_map<Key, Entry, KeyHash> entries GUARDED_BY(mutex);
  std::list<Key> recent GUARDED_BY(mutex);  // of the entries with a block, newest first
  std::uint64_t held_nbytes GUARDED_BY(mutex) = 0;
};

BlockCache::BlockCache(std::uint64_t capacity_nbytes, VerifiedRecords& verified)
    : impl_(std::make_unique<Impl>(capacity_nbytes, verified)) {}

BlockCache::~BlockCache() = default;

std::shared_ptr<const Block> BlockCache::get(const ChunkSource& chunks, std::uint64_t chunk) {
  const Key key{&chunks, chunk};
  {
    const MutexLock lock(impl_->mutex);
    const auto [at, is_new] = impl_->entries.try_emplace(key);
    if (!is_new) {
      const std::shared_ptr<const Impl::Outcome> outcome = at->second.outcome;
      if (outcome->block != nullptr) {
        impl_->recent.splice(impl_->recent.begin(), impl_->recent, at->second.used);
      }
      while (!outcome->known) {
        impl_->decoded.wait(impl_->mutex);
      }
      if (outcome->failure != nullptr) {
        std::rethrow_exception(outcome->failure);
      }
      return outcome->block;
    }
    at->second.outcome = std::make_shared<Impl::Outcome>();
  }
  try {
    auto block = impl_->decode(key);
    impl_->finish(key, block);
    return block;
  } catch (const Error& error) {
    impl_->fail(key, std::current_exception(), error.kind() == ErrorKind::kCorrupt);
    throw;
  } catch (...) {
    impl_->fail(key, std::current_exception(), false);
    throw;
  }
}

}  // namespace npyfs
