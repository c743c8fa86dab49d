// SPDX-License-Identifier: Apache-2.0
//
// LZ4 frames. [lz4/lz4:doc/lz4_Frame_format.md] liblz4 decodes a frame from its start and verifies
// what checksums it has. Its blocks are followed here too: independent blocks can be entered. The
// decoder is first fed a copy of the frame's descriptor without content size and checksum.

#include <lz4frame.h>

#include <algorithm>
#include <array>
#include <new>

#include "formats/bytes/endian.h"
#include "formats/bytes/packings/packings.h"

namespace npyfs {

namespace {

constexpr std::uint32_t kMagic = 0x184D2204;
constexpr std::uint32_t kLegacyMagic = 0x184C2102;  // of `lz4 -l`: blocks without a descriptor

std::uint32_t magic_of(std::span<const std::byte> head) {
  return head.size() < 4 ? 0 : load_le<std::uint32_t>(head.data());
}

bool is_lz4(std::span<const std::byte> head) {
  const std::uint32_t magic = magic_of(head);
  return magic == kMagic || magic == kLegacyMagic || is_skippable_frame(head);
}

class Lz4Decoder : public FrameDecoder {
 public:
  Lz4Decoder() {
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context_, LZ4F_VERSION)) != 0) {
      throw std::bad_alloc();
    }
  }
  ~Lz4Decoder() override { LZ4F_freeDecompressionContext(context_); }
  Lz4Decoder(const Lz4Decoder&) = delete;
  Lz4Decoder& operator=(const Lz4Decoder&) = delete;

  std::size_t enter(const Frame& frame, std::span<const std::byte> head) override {
    LZ4F_resetDecompressionContext(context_);
    within_frame_ = frame.stream != 0;
    unit_ = Unit::kOther;
    blocks_ = skip_nbytes_ = 0;
    if (within_frame_) {
      set_descriptor(frame.stream);
      feed_descriptor();
      begin_block_size();
    } else if (magic_of(head) == kLegacyMagic) {
      throw Refusal{"it has the legacy format of lz4 -l", Refusal::Kind::kUnsupported};
    } else if (magic_of(head) == kMagic && head.size() >= 6) {
      set_descriptor(std::to_integer<std::uint32_t>(head[4]) |
                     std::to_integer<std::uint32_t>(head[5]) << 8);
      unit_ = Unit::kDescriptor;
      left_ = 7U + ((flags_ & kContentSize) != 0 ? 8 : 0) + ((flags_ & kDictionary) != 0 ? 4 : 0);
    }
    return 0;
  }

  Progress step(std::span<const std::byte> in, std::span<std::byte> out) override {
    if (skip_nbytes_ > 0) {
      const std::size_t n = std::min(skip_nbytes_, in.size());
      skip_nbytes_ -= n;
      return {n, 0, skip_nbytes_ == 0};
    }
    Progress progress;
    progress.consumed =
        unit_ == Unit::kOther ? in.size() : std::min<std::uint64_t>(in.size(), left_);
    progress.produced = out.size();
    const std::size_t code = LZ4F_decompress(context_, out.data(), &progress.produced, in.data(),
                                             &progress.consumed, nullptr);
    if (LZ4F_isError(code) != 0) {
      throw Refusal{LZ4F_getErrorName(code)};
    }
    if (unit_ != Unit::kOther) {
      follow(in.first(progress.consumed), progress);
    }
    // The checksum of the content follows, but its beginning was not decoded here.
    const bool skips = code == 0 && within_frame_ && (flags_ & kContentChecksum) != 0;
    skip_nbytes_ = skips ? sizeof(std::uint32_t) : 0;
    progress.ended = code == 0 && !skips;
    return progress;
  }

  // A block as it is stored and as it is decoded, and what it may refer to.
  std::uint64_t memory_nbytes() const override { return 2 * block_nbytes() + (128 << 10); }

 private:
  // What the next bytes are; kOther: what need not be followed.
  enum class Unit { kDescriptor, kBlockSize, kBlock, kOther };
  // Bits of the descriptor's first byte, FLG.
  static constexpr std::uint32_t kDictionary = 1;
  static constexpr std::uint32_t kContentChecksum = 4;
  static constexpr std::uint32_t kContentSize = 8;
  static constexpr std::uint32_t kBlockChecksum = 16;
  static constexpr std::uint32_t kIndependent = 32;

  // `stream` is FLG, and above it BD.
  void set_descriptor(std::uint32_t stream) {
    flags_ = stream & 0xff;
    sizes_ = stream >> 8 & 0xff;
  }

  void feed_descriptor() {
    LZ4F_preferences_t preferences{};
    preferences.frameInfo.blockSizeID = static_cast<LZ4F_blockSizeID_t>(sizes_ >> 4 & 7);
    preferences.frameInfo.blockMode = LZ4F_blockIndependent;
    preferences.frameInfo.blockChecksumFlag =
        (flags_ & kBlockChecksum) != 0 ? LZ4F_blockChecksumEnabled : LZ4F_noBlockChecksum;
    preferences.autoFlush = 1;  // else it takes room for a block
    LZ4F_cctx* writer = nullptr;
    if (LZ4F_isError(LZ4F_createCompressionContext(&writer, LZ4F_VERSION)) != 0) {
      throw std::bad_alloc();
    }
    std::array<std::byte, LZ4F_HEADER_SIZE_MAX> header{};
    const std::size_t nbytes =
        LZ4F_compressBegin(writer, header.data(), header.size(), &preferences);
    LZ4F_freeCompressionContext(writer);
    if (LZ4F_isError(nbytes) != 0) {
      throw std::bad_alloc();
    }
    std::size_t consumed = nbytes;
    std::size_t produced = 0;
    const std::size_t code =
        LZ4F_decompress(context_, nullptr, &produced, header.data(), &consumed, nullptr);
    if (LZ4F_isError(code) != 0 || consumed != nbytes) {
      throw Refusal{"a block cannot be entered"};
    }
  }

  void begin_block_size() {
    unit_ = Unit::kBlockSize;
    left_ = sizeof stored_size_;
    stored_size_ = 0;
  }

  // `bytes` have been consumed and lie within the unit. All that the blocks before hold has come
  // out before the last byte of a block's size is consumed.
  void follow(std::span<const std::byte> bytes, Progress& progress) {
    if (unit_ == Unit::kBlockSize) {
      for (const std::byte byte : bytes) {
        stored_size_ = stored_size_ >> 8 | std::to_integer<std::uint32_t>(byte) << 24;
      }
    }
    left_ -= bytes.size();
    if (left_ > 0) {
      return;
    }
    if (unit_ == Unit::kDescriptor && (flags_ & kDictionary) != 0) {
      throw Refusal{"it needs a dictionary", Refusal::Kind::kUnsupported};
    }
    if (unit_ != Unit::kBlockSize) {
      begin_block_size();
      return;
    }
    if (stored_size_ == 0) {
      unit_ = Unit::kOther;  // the end
      return;
    }
    if ((flags_ & kIndependent) != 0 && blocks_++ > 0) {
      progress.entry_back = sizeof stored_size_;
      progress.entry_stream = flags_ | sizes_ << 8;
    }
    constexpr std::uint32_t kNotCompressed = 0x80000000;
    unit_ = Unit::kBlock;
    left_ = std::uint64_t{stored_size_ & ~kNotCompressed} +
            ((flags_ & kBlockChecksum) != 0 ? sizeof(std::uint32_t) : 0);
  }

  // 64 KiB, 256 KiB, 1 MiB or 4 MiB.
  std::uint64_t block_nbytes() const {
    return std::uint64_t{1} << (8 + 2 * std::clamp<std::uint32_t>(sizes_ >> 4 & 7, 4, 7));
  }

  LZ4F_dctx* context_ = nullptr;
  std::uint32_t flags_ = 0;
  std::uint32_t sizes_ = 0;
  bool within_frame_ = false;  // it was entered there
  Unit unit_ = Unit::kOther;
  std::uint64_t left_ = 0;         // of the unit
  std::uint32_t stored_size_ = 0;  // of a block, as far as it is read
  std::uint64_t blocks_ = 0;
  std::size_t skip_nbytes_ = 0;
};

std::unique_ptr<FrameDecoder> make_decoder() { return std::make_unique<Lz4Decoder>(); }

}  // namespace

const Packing kLz4Packing = {
    .name = "lz4", .extension = "lz4", .recognises = is_lz4, .make_decoder = make_decoder};

}  // namespace npyfs
