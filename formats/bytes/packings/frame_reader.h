// SPDX-License-Identifier: Apache-2.0
//
// Reads the frames of a compressed file.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/bytes/packings/packing.h"

namespace npyfs {

// Decodes from the start of a frame on. Not for gzip. One thread.
class FrameReader {
 public:
  FrameReader(const ByteSource& base, const Packing& packing);

  void enter(const Frame& frame);
  // Decodes into `out`, up to the next entry or the end of the frame; how much. Throws kCorrupt
  // where the stream is cut, damaged, or its checksum does not hold, kTooLarge where it needs more
  // memory than 128 MiB, kUnsupported where it is of a kind that is not read.
  std::size_t read(std::span<std::byte> out);
  // Where read() has stopped, if the frame can be entered there; out_offset is not set.
  const std::optional<Frame>& entry() const { return entry_; }
  // Whether the frame's end has been reached.
  bool at_end() const;
  // The offset of the first byte that has not been consumed.
  std::uint64_t in_offset() const;
  // About what it takes, once a frame has been entered.
  std::uint64_t memory_nbytes() const;

 private:
  void refill();

  const ByteSource& base_;
  const Packing& packing_;
  std::unique_ptr<FrameDecoder> decoder_;
  std::vector<std::byte> input_;
  std::uint64_t input_offset_ = 0;  // of input_ in the file
  std::size_t used_ = 0;            // of input_
  std::uint64_t produced_ = 0;
  bool at_end_ = true;
  std::optional<Frame> entry_;
};

// The first `nbytes` decoded bytes of a file of any packing; fewer where it ends before or is
// damaged, none where it is not packed. Throws only as ByteSource::read_at.
std::vector<std::byte> unpack_head(const ByteSource& source, std::size_t nbytes);

}  // namespace npyfs
