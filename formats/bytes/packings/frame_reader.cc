// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/packings/frame_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/error.h"
#include "formats/bytes/inflate.h"
#include "formats/bytes/packings/packing_table.h"

namespace npyfs {

namespace {

constexpr std::size_t kInputNbytes = std::size_t{256} << 10;

Error refusal_error(const ByteSource& base, std::uint64_t at, const Packing& packing,
                    std::uint64_t produced, const FrameDecoder::Refusal& refusal) {
  struct Text {
    const char* found;
    const char* expected;
    ErrorKind kind;
  };
  const auto text = [&]() -> Text {
    switch (refusal.kind) {
      case FrameDecoder::Refusal::Kind::kNeedsMemory:
        return {"too demanding", "one that 128 MiB are enough for; compress it anew",
                ErrorKind::kTooLarge};
      case FrameDecoder::Refusal::Kind::kUnsupported:
        return {"of an unsupported kind", "another; compress it anew", ErrorKind::kUnsupported};
      case FrameDecoder::Refusal::Kind::kDamaged:
        break;
    }
    return {"damaged", "a whole one; get the file again", ErrorKind::kCorrupt};
  }();
  const Error error =
      corrupt_at(base.name(), at,
                 fmt::format("the {} stream is {} ({}) {} decoded bytes into a frame, expected {}",
                             packing.name, text.found, refusal.why, produced, text.expected));
  return {text.kind, error.what()};
}

}  // namespace

FrameReader::FrameReader(const ByteSource& base, const Packing& packing)
    : base_(base), packing_(packing), decoder_(packing.make_decoder()) {}

bool FrameReader::at_end() const { return at_end_; }

std::uint64_t FrameReader::memory_nbytes() const {
  return decoder_->memory_nbytes() + input_.capacity();
}

std::uint64_t FrameReader::in_offset() const { return input_offset_ + used_; }

void FrameReader::refill() {
  input_offset_ += used_;
  used_ = 0;
  input_.resize(std::min<std::uint64_t>(kInputNbytes, base_.nbytes() - input_offset_));
  base_.read_at(input_offset_, input_);
}

void FrameReader::enter(const Frame& frame) {
  constexpr std::size_t kHeaderNbytes = 1024;
  const bool near =
      frame.in_offset >= input_offset_ && frame.in_offset - input_offset_ <= input_.size();
  input_.resize(near ? input_.size() : 0);
  input_offset_ = near ? input_offset_ : frame.in_offset;
  used_ = near ? static_cast<std::size_t>(frame.in_offset - input_offset_) : 0;
  if (input_.size() - used_ < kHeaderNbytes) {
    refill();
  }
  produced_ = 0;
  at_end_ = false;
  entry_.reset();
  try {
    used_ += decoder_->enter(frame, std::span<const std::byte>(input_).subspan(used_));
  } catch (const FrameDecoder::Refusal& refusal) {
    throw refusal_error(base_, frame.in_offset, packing_, 0, refusal);
  }
}

std::size_t FrameReader::read(std::span<std::byte> out) {
  constexpr std::size_t kMostStep = std::size_t{1} << 30;
  std::size_t done = 0;
  entry_.reset();
  while (done < out.size() && !at_end_ && !entry_) {
    if (used_ == input_.size() && in_offset() < base_.nbytes()) {
      refill();
    }
    FrameDecoder::Progress progress;
    try {
      progress = decoder_->step(std::span<const std::byte>(input_).subspan(used_),
                                out.subspan(done, std::min(out.size() - done, kMostStep)));
    } catch (const FrameDecoder::Refusal& refusal) {
      throw refusal_error(base_, in_offset(), packing_, produced_, refusal);
    }
    const bool stuck = progress.consumed == 0 && progress.produced == 0 && !progress.ended;
    if (stuck) {
      throw corrupt_at(base_.name(), base_.nbytes(),
                       fmt::format("the {} stream is cut short {} decoded bytes into a frame, "
                                   "expected a whole one; get the file again",
                                   packing_.name, produced_));
    }
    used_ += progress.consumed;
    done += progress.produced;
    produced_ += progress.produced;
    at_end_ = progress.ended;
    if (progress.entry_back > 0) {
      entry_ = Frame{in_offset() - progress.entry_back, 0, progress.entry_stream};
    }
  }
  return done;
}

std::vector<std::byte> unpack_head(const ByteSource& source, std::size_t nbytes) {
  const Packing* packing = find_packing(source);
  if (packing == nullptr) {
    return {};
  }
  if (packing->make_decoder == nullptr) {
    return inflate_head(source, nbytes);
  }
  std::vector<std::byte> head(nbytes);
  std::size_t done = 0;
  try {
    FrameReader reader(source, *packing);
    const bool has_index = packing->first_frame != nullptr;
    Frame frame = has_index ? packing->first_frame(source) : Frame();
    // Skippable and empty frames may come first.
    for (int i = 0; i < 16 && done < nbytes && frame.in_offset < source.nbytes(); ++i) {
      reader.enter(frame);
      while (done < nbytes && !reader.at_end()) {
        done += reader.read(std::span(head).subspan(done));
      }
      if (has_index) {
        break;
      }
      frame.in_offset = reader.in_offset();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kTooLarge &&
        error.kind() != ErrorKind::kUnsupported) {
      throw;
    }
  }
  head.resize(done);
  return head;
}

}  // namespace npyfs
