// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/verify_stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <span>
#include <variant>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "formats/chunk_grid.h"

namespace npyfs {

namespace {

using RequireIntact = std::function<void(const Guard&)>;

class VerifyContext : public DecodeContext {
 public:
  explicit VerifyContext(const RequireIntact& require_intact) : require_intact_(require_intact) {}

  void require_intact(const RecordTable& table, std::uint64_t record) override {
    require_intact_({&table, record, 1});
  }
  void mark_damaged(ByteRange /*range*/, std::exception_ptr why) override {
    std::rethrow_exception(why);
  }

 private:
  const RequireIntact& require_intact_;
};

class StoredCheck {
 public:
  explicit StoredCheck(const RequireIntact& require_intact)
      : require_intact_(require_intact), context_(require_intact) {}

  void check(const StoredNpy& npy) {
    if (npy.guarded_by != nullptr) {
      attempt([&] { require_intact_(npy.guard()); });
    } else if (npy.storage != "mapped") {
      attempt([&] { read_all(npy); });
    }
  }

  // `sources` are the array's.
  void check(const ChunkGrid& grid, const std::vector<SourcePtr>& sources) {
    if (grid.chunk_count() > kMostVerifiedChunks) {
      throw file_error(ErrorKind::kTooLarge, sources.front()->name(),
                       fmt::format("the array has {} chunks, expected at most {} to be verified at "
                                   "mount; mount it without --verify=mount",
                                   grid.chunk_count(), kMostVerifiedChunks));
    }
    for (std::uint64_t chunk = 0; chunk < grid.chunk_count(); ++chunk) {
      const ChunkPlace place = grid.locate(chunk);
      if (place.kind == ChunkPlace::Kind::kMapped && place.guard.table != nullptr) {
        attempt([&] { require_intact_(place.guard); });
      } else if (place.kind == ChunkPlace::Kind::kDecoded && grid.is_stored()) {
        attempt([&] { decode(grid, chunk); });
      } else if (place.kind == ChunkPlace::Kind::kDamaged) {
        attempt([&] { throw Error(place.damage->error); });
      }
    }
  }

  StoredDamage take() { return std::move(damage_); }

 private:
  static constexpr std::size_t kReadNbytes = std::size_t{4} << 20;

  template <typename Action>
  void attempt(const Action& action) {
    ++damage_.checked;
    try {
      action();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      if (damage_.chunks++ == 0) {
        damage_.first = error.what();
      }
    }
  }

  // What is decoded on the way checks itself.
  void read_all(const StoredNpy& npy) {
    bytes_.resize(kReadNbytes);
    for (std::uint64_t at = 0; at < npy.data_nbytes();) {
      const auto nbytes = std::min<std::uint64_t>(npy.data_nbytes() - at, kReadNbytes);
      npy.source->read_at(npy.data_offset() + at, std::span(bytes_).first(nbytes));
      at += nbytes;
    }
  }

  void decode(const ChunkGrid& grid, std::uint64_t chunk) {
    const SourceWatch watch;
    if (!grid.was_written(chunk, context_)) {
      return;
    }
    bytes_.resize(grid.chunk_nbytes(chunk));
    grid.decode(chunk, bytes_, context_);
    watch.check_unchanged();
  }

  const RequireIntact& require_intact_;
  VerifyContext context_;
  std::vector<std::byte> bytes_;
  StoredDamage damage_;
};

}  // namespace

StoredDamage find_damage(const StoredArray& stored, const RequireIntact& require_intact) {
  StoredCheck check(require_intact);
  for (const ArrayPart& part : stored.parts) {
    if (const auto* npy = std::get_if<StoredNpy>(&part)) {
      check.check(*npy);
    } else {
      check.check(*std::get<std::shared_ptr<const ChunkGrid>>(part), stored.sources);
    }
  }
  return check.take();
}

}  // namespace npyfs
