// SPDX-License-Identifier: Apache-2.0
//
// Compressed streams, decoded frame by frame: what each of gzip, zstd, xz and bzip2 looks like, and
// a reader for the frames of the last three (inflate.h has gzip).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/bytes/byte_source.h"

namespace npyfs {

enum class Packing { kNone, kGzip, kZstd, kXz, kBzip2 };

// By the first bytes; 6 are enough.
Packing find_packing(std::span<const std::byte> head);
Packing find_packing(const ByteSource& source);
const char* packing_name(Packing packing);

// A piece of a compressed stream that can be decoded on its own: a zstd frame (RFC 8878), an xz
// block, a whole bzip2 stream; or several of them, one behind the other.
struct Frame {
  std::uint64_t in_offset = 0;   // of its first byte in the file
  std::uint64_t out_offset = 0;  // of its first decoded byte
  std::uint32_t check = 0;       // xz: the kind of checksum of its stream
};

// Decodes from the start of a frame on. Not for gzip. One thread.
class FrameReader {
 public:
  FrameReader(const ByteSource& base, Packing packing);
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  void enter(const Frame& frame);
  // Decodes into `out`, up to the end of the frame; how much. Throws kCorrupt where the stream is
  // cut, damaged, or its checksum does not hold, kTooLarge where it needs more memory than 128 MiB.
  std::size_t read(std::span<std::byte> out);
  // Whether the frame's end has been reached.
  bool at_end() const;
  // Of the byte behind what has been consumed.
  std::uint64_t in_offset() const;
  // About what it takes, once a frame has been entered.
  std::uint64_t memory_nbytes() const;

  class Decoder;

 private:
  void refill();

  const ByteSource& base_;
  Packing packing_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::byte> input_;
  std::uint64_t input_offset_ = 0;  // of input_ in the file
  std::size_t used_ = 0;            // of input_
  std::uint64_t produced_ = 0;
  bool at_end_ = true;
};

// The blocks of an xz file, from the indexes of its streams, and their decoded size in all. Throws
// kCorrupt where these are damaged.
struct XzBlocks {
  std::vector<Frame> blocks;
  std::uint64_t nbytes = 0;
};
XzBlocks read_xz_index(const ByteSource& base);

// The first `nbytes` decoded bytes of a file of any packing; fewer where it ends before or is
// damaged, none where it is not packed. Throws only as ByteSource::read_at.
std::vector<std::byte> unpack_head(const ByteSource& source, std::size_t nbytes);

}  // namespace npyfs
