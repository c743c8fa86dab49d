// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/packing.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/bytes/inflate.h"

namespace npyfs {

namespace {

constexpr std::size_t kInputNbytes = std::size_t{256} << 10;
constexpr std::size_t kMagicNbytes = 6;
constexpr std::uint64_t kMostMemory = std::uint64_t{128} << 20;
// Of an xz index: about a million blocks.
constexpr std::uint64_t kMostIndexMemory = std::uint64_t{32} << 20;

bool is_zstd(std::uint32_t magic) {
  constexpr std::uint32_t kSkippable = 0x184D2A50;  // to 5F
  return magic == ZSTD_MAGICNUMBER || (magic & 0xfffffff0) == kSkippable;
}

struct Progress {
  std::size_t consumed = 0;
  std::size_t produced = 0;
  bool ended = false;
};

// What a library says of a stream that it cannot decode.
struct Refusal {
  const char* why;
  bool needs_memory = false;
};

}  // namespace

class FrameReader::Decoder {
 public:
  virtual ~Decoder() = default;
  // `head`: what can be had of the file from the frame on, at least 1 KiB unless it ends before.
  // Returns how much of it has been consumed.
  virtual std::size_t enter(const Frame& frame, std::span<const std::byte> head) = 0;
  virtual Progress step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // About what it takes, once it has been entered.
  virtual std::uint64_t memory_nbytes() const = 0;
};

namespace {

class ZstdDecoder : public FrameReader::Decoder {
 public:
  ZstdDecoder() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) {
      throw std::bad_alloc();
    }
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  std::size_t enter(const Frame& /*frame*/, std::span<const std::byte> /*head*/) override {
    ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
    return 0;
  }
  Progress step(std::span<const std::byte> in, std::span<std::byte> out) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t code = ZSTD_decompressStream(context_, &to, &from);
    if (ZSTD_isError(code) != 0) {
      const std::string_view why = ZSTD_getErrorName(code);
      throw Refusal{why.data(), why.find("memory") != std::string_view::npos};
    }
    return {from.pos, to.pos, code == 0};
  }
  std::uint64_t memory_nbytes() const override { return ZSTD_sizeof_DCtx(context_); }

 private:
  ZSTD_DCtx* context_;
};

class Bzip2Decoder : public FrameReader::Decoder {
 public:
  Bzip2Decoder() { start(); }
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2Decoder(const Bzip2Decoder&) = delete;
  Bzip2Decoder& operator=(const Bzip2Decoder&) = delete;

  std::size_t enter(const Frame& /*frame*/, std::span<const std::byte> /*head*/) override {
    BZ2_bzDecompressEnd(&stream_);
    start();
    return 0;
  }
  Progress step(std::span<const std::byte> in, std::span<std::byte> out) override {
    stream_.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
    stream_.avail_in = static_cast<unsigned>(in.size());
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = static_cast<unsigned>(out.size());
    const int code = BZ2_bzDecompress(&stream_);
    if (code != BZ_OK && code != BZ_STREAM_END) {
      throw Refusal{"a block does not match its checksum, or is none"};
    }
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out, code == BZ_STREAM_END};
  }
  // What the manual says of the largest blocks.
  std::uint64_t memory_nbytes() const override { return 3'700'000; }

 private:
  void start() {
    stream_ = {};
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) {
      throw std::bad_alloc();
    }
  }
  bz_stream stream_{};
};

class XzDecoder : public FrameReader::Decoder {
 public:
  XzDecoder() { filters_[0].id = LZMA_VLI_UNKNOWN; }
  ~XzDecoder() override {
    lzma_end(&stream_);
    lzma_filters_free(filters_.data(), nullptr);
  }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  std::size_t enter(const Frame& frame, std::span<const std::byte> head) override {
    lzma_filters_free(filters_.data(), nullptr);
    filters_[0].id = LZMA_VLI_UNKNOWN;
    block_ = {};
    block_.version = 1;
    block_.check = static_cast<lzma_check>(frame.check);
    block_.filters = filters_.data();
    if (head.empty() || head[0] == std::byte{0}) {
      throw Refusal{"there is no block header"};
    }
    block_.header_size = lzma_block_header_size_decode(std::to_integer<std::uint32_t>(head[0]));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(head.data());
    if (block_.header_size > head.size() ||
        lzma_block_header_decode(&block_, nullptr, bytes) != LZMA_OK) {
      throw Refusal{"a block header is damaged"};
    }
    if (lzma_raw_decoder_memusage(filters_.data()) > kMostMemory) {
      throw Refusal{"a block needs too much memory", true};
    }
    if (lzma_block_decoder(&stream_, &block_) != LZMA_OK) {
      throw Refusal{"a block cannot be decoded"};
    }
    return block_.header_size;
  }
  Progress step(std::span<const std::byte> in, std::span<std::byte> out) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret code = lzma_code(&stream_, LZMA_RUN);
    if (code != LZMA_OK && code != LZMA_STREAM_END && code != LZMA_BUF_ERROR) {
      throw Refusal{"a block does not match its checksum or size"};
    }
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out, code == LZMA_STREAM_END};
  }
  std::uint64_t memory_nbytes() const override {
    return lzma_raw_decoder_memusage(filters_.data());
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  std::array<lzma_filter, LZMA_FILTERS_MAX + 1> filters_{};
  lzma_block block_{};
};

std::unique_ptr<FrameReader::Decoder> make_decoder(Packing packing) {
  switch (packing) {
    case Packing::kXz:
      return std::make_unique<XzDecoder>();
    case Packing::kBzip2:
      return std::make_unique<Bzip2Decoder>();
    default:
      return std::make_unique<ZstdDecoder>();
  }
}

// Owns a lzma_stream that reads indexes.
struct IndexStream {
  lzma_stream stream = LZMA_STREAM_INIT;
  lzma_index* index = nullptr;
  ~IndexStream() {
    lzma_end(&stream);
    lzma_index_end(index, nullptr);
  }
};

}  // namespace

Packing find_packing(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  using std::string_view_literals::operator""sv;
  if (is_gzip(head)) {
    return Packing::kGzip;
  }
  if (head.size() >= 4 && is_zstd(load_le<std::uint32_t>(head.data()))) {
    return Packing::kZstd;
  }
  if (text.starts_with("\xfd"
                       "7zXZ\0"sv)) {
    return Packing::kXz;
  }
  const bool bzip2 =
      text.size() >= 4 && text.starts_with("BZh") && text[3] >= '1' && text[3] <= '9';
  return bzip2 ? Packing::kBzip2 : Packing::kNone;
}

Packing find_packing(const ByteSource& source) {
  std::array<std::byte, kMagicNbytes> head{};
  const std::size_t n = std::min<std::uint64_t>(head.size(), source.nbytes());
  source.read_at(0, std::span(head).first(n));
  return find_packing(std::span<const std::byte>(head).first(n));
}

const char* packing_name(Packing packing) {
  switch (packing) {
    case Packing::kNone:
      return "plain";
    case Packing::kGzip:
      return "gzip";
    case Packing::kZstd:
      return "zstd";
    case Packing::kXz:
      return "xz";
    case Packing::kBzip2:
      return "bzip2";
  }
  return "";
}

FrameReader::FrameReader(const ByteSource& base, Packing packing)
    : base_(base), packing_(packing), decoder_(make_decoder(packing)) {}

FrameReader::~FrameReader() = default;

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

namespace {

Error refusal_error(const ByteSource& base, std::uint64_t at, Packing packing,
                    std::uint64_t produced, const Refusal& refusal) {
  const Error error = corrupt_at(
      base.name(), at,
      fmt::format("the {} stream is {} ({}) {} decoded bytes into a frame, expected {}",
                  packing_name(packing), refusal.needs_memory ? "too demanding" : "damaged",
                  refusal.why, produced,
                  refusal.needs_memory ? "one that 128 MiB are enough for; compress it anew"
                                       : "a whole one; get the file again"));
  return {refusal.needs_memory ? ErrorKind::kTooLarge : ErrorKind::kCorrupt, error.what()};
}

}  // namespace

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
  try {
    used_ += decoder_->enter(frame, std::span<const std::byte>(input_).subspan(used_));
  } catch (const Refusal& refusal) {
    throw refusal_error(base_, frame.in_offset, packing_, 0, refusal);
  }
}

std::size_t FrameReader::read(std::span<std::byte> out) {
  constexpr std::size_t kMostStep = std::size_t{1} << 30;
  std::size_t done = 0;
  while (done < out.size() && !at_end_) {
    if (used_ == input_.size() && in_offset() < base_.nbytes()) {
      refill();
    }
    Progress progress;
    try {
      progress = decoder_->step(std::span<const std::byte>(input_).subspan(used_),
                                out.subspan(done, std::min(out.size() - done, kMostStep)));
    } catch (const Refusal& refusal) {
      throw refusal_error(base_, in_offset(), packing_, produced_, refusal);
    }
    const bool stuck = progress.consumed == 0 && progress.produced == 0 && !progress.ended;
    if (stuck) {
      throw corrupt_at(base_.name(), base_.nbytes(),
                       fmt::format("the {} stream is cut short {} decoded bytes into a frame, "
                                   "expected a whole one; get the file again",
                                   packing_name(packing_), produced_));
    }
    used_ += progress.consumed;
    done += progress.produced;
    produced_ += progress.produced;
    at_end_ = progress.ended;
  }
  return done;
}

XzBlocks read_xz_index(const ByteSource& base) {
  IndexStream reader;
  lzma_stream& stream = reader.stream;
  const auto fail = [&](const char* why) {
    return corrupt_at(base.name(), base.nbytes(),
                      fmt::format("the xz file's index is {}, expected one that tells where its "
                                  "blocks are; the file is cut short or damaged",
                                  why));
  };
  if (lzma_file_info_decoder(&stream, &reader.index, kMostIndexMemory, base.nbytes()) != LZMA_OK) {
    throw std::bad_alloc();
  }
  std::vector<std::byte> input;
  std::uint64_t at = 0;
  for (;;) {
    if (stream.avail_in == 0) {
      input.resize(std::min<std::uint64_t>(std::size_t{8} << 10, base.nbytes() - at));
      base.read_at(at, input);
      at += input.size();
      stream.next_in = reinterpret_cast<const std::uint8_t*>(input.data());
      stream.avail_in = input.size();
    }
    const lzma_ret code = lzma_code(&stream, LZMA_RUN);
    if (code == LZMA_SEEK_NEEDED) {
      at = std::min(stream.seek_pos, base.nbytes());
      stream.avail_in = 0;
    } else if (code == LZMA_STREAM_END) {
      break;
    } else if (code != LZMA_OK) {
      throw fail(code == LZMA_MEMLIMIT_ERROR ? "too long" : "not there or damaged");
    }
  }
  XzBlocks found;
  found.nbytes = lzma_index_uncompressed_size(reader.index);
  lzma_index_iter block;
  lzma_index_iter_init(&block, reader.index);
  while (!lzma_index_iter_next(&block, LZMA_INDEX_ITER_NONEMPTY_BLOCK)) {
    if (block.stream.flags == nullptr) {
      throw fail("without flags");
    }
    found.blocks.push_back({block.block.compressed_file_offset,
                            block.block.uncompressed_file_offset,
                            static_cast<std::uint32_t>(block.stream.flags->check)});
  }
  return found;
}

std::vector<std::byte> unpack_head(const ByteSource& source, std::size_t nbytes) {
  const Packing packing = find_packing(source);
  if (packing == Packing::kNone) {
    return {};
  }
  if (packing == Packing::kGzip) {
    return inflate_head(source, nbytes);
  }
  std::vector<std::byte> head(nbytes);
  std::size_t done = 0;
  try {
    FrameReader reader(source, packing);
    Frame frame;
    if (packing == Packing::kXz) {
      std::array<std::byte, 12> header{};  // the check stands in its second flag byte
      source.read_at(0, header);
      frame = {header.size(), 0, std::to_integer<std::uint32_t>(header[7]) & 15};
    }
    // Skippable and empty frames may come first.
    for (int i = 0; i < 16 && done < nbytes && frame.in_offset < source.nbytes(); ++i) {
      reader.enter(frame);
      while (done < nbytes && !reader.at_end()) {
        done += reader.read(std::span(head).subspan(done));
      }
      if (packing == Packing::kXz) {
        break;
      }
      frame.in_offset = reader.in_offset();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kTooLarge) {
      throw;
    }
  }
  head.resize(done);
  return head;
}

}  // namespace npyfs
