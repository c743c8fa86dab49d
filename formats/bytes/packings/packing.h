// SPDX-License-Identifier: Apache-2.0
//
// One way in which files are compressed: how it is recognised, and a decoder for its frames.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// A piece of a compressed stream that can be decoded on its own: a zstd frame (RFC 8878), an xz
// block, a whole bzip2 stream, an lz4 frame or what follows an independent block of one; or several
// of them, one after another.
struct Frame {
  std::uint64_t in_offset = 0;   // of its first byte in the file
  std::uint64_t out_offset = 0;  // of its first decoded byte
  // State a decoder needs that the frame's bytes do not contain. xz: the kind of checksum of its
  // stream. lz4, within a frame: the first two bytes of the frame's descriptor; 0 at its start.
  std::uint32_t stream = 0;
  std::uint32_t zero = 0;  // instead of padding: frames are kept as they are
};

// The frames of a file, and their decoded size in all.
struct FrameIndex {
  std::vector<Frame> frames;
  std::uint64_t nbytes = 0;
};

// Decodes one frame after another. One thread.
class FrameDecoder {
 public:
  struct Progress {
    std::size_t consumed = 0;
    std::size_t produced = 0;
    bool ended = false;
    // The frame can be entered this many bytes before what is consumed ends, with this `stream`.
    // All that is produced so far comes before. 0: not there.
    std::size_t entry_back = 0;
    std::uint32_t entry_stream = 0;
  };
  // What a library says of a stream that it cannot decode; both functions below throw it.
  struct Refusal {
    enum class Kind { kDamaged, kNeedsMemory, kUnsupported };
    const char* why;
    Kind kind = Kind::kDamaged;
  };

  virtual ~FrameDecoder() = default;
  // `head`: what can be had of the file from the frame on, at least 1 KiB unless it ends before.
  // Returns how much of it has been consumed.
  virtual std::size_t enter(const Frame& frame, std::span<const std::byte> head) = 0;
  virtual Progress step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // About what it takes, once it has been entered.
  virtual std::uint64_t memory_nbytes() const = 0;
};

// Frames that need more than this are refused.
inline constexpr std::uint64_t kMostFrameMemory = std::uint64_t{128} << 20;

// A row of the table in packing_table.cc.
struct Packing {
  const char* name;       // for messages
  const char* extension;  // of file names, behind that of the format
  // By the first kPackingMagicNbytes, or fewer where the file is shorter.
  bool (*recognises)(std::span<const std::byte> head);
  // Null for gzip, which inflate.h reads.
  std::unique_ptr<FrameDecoder> (*make_decoder)() = nullptr;

  // Packings whose files have an index of their frames define both. In all others, frames follow
  // each other from the beginning of the file. Throws kCorrupt where the index is damaged.
  FrameIndex (*read_index)(const ByteSource& base) = nullptr;
  // The first frame, without a look at the index.
  Frame (*first_frame)(const ByteSource& base) = nullptr;
};

inline constexpr std::size_t kPackingMagicNbytes = 6;

}  // namespace npyfs
