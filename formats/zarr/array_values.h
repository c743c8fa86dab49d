// SPDX-License-Identifier: Apache-2.0
//
// The stored chunks of one array.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/codecs/codec_chain.h"
#include "formats/bytes/error.h"
#include "formats/bytes/storage.h"
#include "formats/zarr/chunk_keys.h"

namespace npyfs {

// As a source of bytes it is the chunks one after another, each of `chunk_nbytes` bytes, whether
// they were ever written or not: what an array of plain chunks maps to. Which of them there are is
// not known before they are read. Its identity is that of the array's metadata, and of the chunks
// that have been read.
class ArrayValues : public ByteSource {
 public:
  struct Parts {
    StoragePtr storage;
    std::int64_t opened_at_ns = 0;  // what its take_time() said
    std::string prefix;             // of the array's keys
    ChunkKeys keys;
    Shape grid_shape;  // of stored chunks
    SourcePtr metadata;
    std::uint64_t chunk_nbytes = 0;  // 0: chunks are not plain
    std::vector<std::byte> fill;     // one element
    // What each chunk was when the array was opened; empty if that was not noted.
    std::vector<Identity> noted;

    std::string key(std::uint64_t chunk) const;
    // Fills `noted`, where values have files of their own and there are at most `left` chunks,
    // which become fewer.
    void note_chunks(std::uint64_t& left);
  };
  explicit ArrayValues(Parts parts);

  std::string key(std::uint64_t chunk) const { return parts_.key(chunk); }
  std::string name_of(std::uint64_t chunk) const { return parts_.storage->name_of(key(chunk)); }
  const Storage& storage() const { return *parts_.storage; }
  // The size of a plain chunk.
  std::uint64_t chunk_nbytes() const { return parts_.chunk_nbytes; }

  // The numbers of the chunks that there are; nothing where it would take listing directories.
  std::optional<std::vector<std::uint64_t>> chunks() const;

  // One stored chunk, open to be read.
  class Value {
   public:
    Value(std::unique_ptr<StoredValue> stored, const ArrayValues& values)
        : stored_(std::move(stored)), values_(values) {}
    std::uint64_t nbytes() const { return stored_->nbytes(); }
    // As StoredValue::read.
    void read(std::uint64_t offset, std::span<std::byte> out) const;
    // Throws kCorrupt where the store has a checksum of it that does not match: to be asked before
    // parts are read.
    void require_intact(DecodeContext& context) const;

   private:
    std::unique_ptr<StoredValue> stored_;
    const ArrayValues& values_;
  };
  // Nothing where it was never written. Throws kCorrupt where something else is in its place,
  // kChanged, kIo.
  std::optional<Value> open_chunk(std::uint64_t chunk) const;
  // All of it, at most `most_nbytes`.
  std::optional<Buffer> read_chunk(std::uint64_t chunk, std::uint64_t most_nbytes) const;
  // That a plain chunk has `nbytes` bytes.
  Error size_error(std::uint64_t chunk, std::uint64_t nbytes) const;
  // Runs `decode`; what it throws as kCorrupt without a file's name gets that of the chunk.
  void name_damage(std::uint64_t chunk, const std::function<void()>& decode) const;

  Identity identity() const override { return parts_.metadata->identity(); }
  std::string path() const override { return parts_.metadata->path(); }
  void check_unchanged() const override;
  // Of chunks that were noted.
  void check_parts(std::size_t first, std::size_t count) const override;
  // Of an archive, or if all chunks were noted.
  bool knows_its_files() const override;
  bool changed() const override;

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override;
  void read_plain(std::uint64_t chunk, std::uint64_t within, std::span<std::byte> out) const;

  // Runs `access`, remembering what it throws as kChanged.
  void noting_change(const std::function<void()>& access) const;

  Parts parts_;
  ChangeMark changed_;
};

}  // namespace npyfs
