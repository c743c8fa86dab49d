// SPDX-License-Identifier: Apache-2.0
//
// Decoders of frames that several chunks are made of, between one chunk and the next.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "formats/bytes/packings/frame_reader.h"

namespace npyfs {

// A decoder where a chunk has ended: the next chunk goes on there, so that reading on in order
// decodes a large frame once and not once a chunk.
struct PausedDecoder {
  PausedDecoder(const ByteSource& base, const Packing& packing, std::uint64_t chunks)
      : serial(chunks), reader(base, packing) {}

  std::uint64_t serial;  // of the chunks; its source is gone where they are
  Frame frame;           // that has been entered last
  FrameReader reader;
  std::uint64_t at = 0;      // of the next decoded byte
  std::uint64_t nbytes = 0;  // that it takes while it waits
};

// One decoder for each source of chunks that was decoded lately, for as many as there is room for.
// Any thread; whoever takes a decoder has it alone. Without a lock: two who meet may find less than
// there is, and begin a frame anew.
class PausedDecoders {
 public:
  PausedDecoders() = default;
  ~PausedDecoders();
  PausedDecoders(const PausedDecoders&) = delete;
  PausedDecoders& operator=(const PausedDecoders&) = delete;

  // That of the chunks with this serial; null where there is none.
  std::unique_ptr<PausedDecoder> take(std::uint64_t serial);
  // Keeps it, in place of an older one of the same chunks. What was kept longest goes until all
  // take no more than `most_nbytes`, but this one stays.
  void put(std::unique_ptr<PausedDecoder> decoder, std::uint64_t most_nbytes);

  // What is kept. Off by what others are about to put or take.
  std::uint64_t nbytes() const { return nbytes_; }

 private:
  // More readers in order, each in a shard of its own, are rare: a decoder takes megabytes.
  static constexpr std::size_t kMostDecoders = 32;
  struct Slot {
    std::atomic<std::uint64_t> serial{0};
    std::atomic<std::uint64_t> since{0};  // 0: empty, or being filled
    std::atomic<PausedDecoder*> decoder{nullptr};
  };
  std::unique_ptr<PausedDecoder> empty(Slot& slot);
  Slot& slot_for(std::uint64_t serial);
  Slot* oldest(const Slot& but);

  std::array<Slot, kMostDecoders> slots_;
  std::atomic<std::uint64_t> nbytes_{0};
  std::atomic<std::uint64_t> time_{0};  // counts what is put
};

}  // namespace npyfs
