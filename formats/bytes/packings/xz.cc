// SPDX-License-Identifier: Apache-2.0
//
// xz files: streams of blocks, each a frame, with an index behind them. [tukaani: xz-file-format]

#include <fmt/format.h>
#include <lzma.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/packings/packings.h"

namespace npyfs {

namespace {

// The memory for an xz index: about a million blocks.
constexpr std::uint64_t kMostIndexMemory = std::uint64_t{32} << 20;

bool is_xz(std::span<const std::byte> head) {
  using std::string_view_literals::operator""sv;
  return std::string_view(reinterpret_cast<const char*>(head.data()), head.size())
      .starts_with(
          "\xfd"
          "7zXZ\0"sv);
}

class XzDecoder : public FrameDecoder {
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
    block_.check = static_cast<lzma_check>(frame.stream);
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
    if (lzma_raw_decoder_memusage(filters_.data()) > kMostFrameMemory) {
      throw Refusal{"a block needs too much memory", Refusal::Kind::kNeedsMemory};
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

std::unique_ptr<FrameDecoder> make_decoder() { return std::make_unique<XzDecoder>(); }

// Owns a lzma_stream that reads indexes.
struct IndexStream {
  lzma_stream stream = LZMA_STREAM_INIT;
  lzma_index* index = nullptr;
  ~IndexStream() {
    lzma_end(&stream);
    lzma_index_end(index, nullptr);
  }
};

FrameIndex read_index(const ByteSource& base) {
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
  FrameIndex found;
  found.nbytes = lzma_index_uncompressed_size(reader.index);
  lzma_index_iter block;
  lzma_index_iter_init(&block, reader.index);
  while (!lzma_index_iter_next(&block, LZMA_INDEX_ITER_NONEMPTY_BLOCK)) {
    if (block.stream.flags == nullptr) {
      throw fail("without flags");
    }
    found.frames.push_back({block.block.compressed_file_offset,
                            block.block.uncompressed_file_offset,
                            static_cast<std::uint32_t>(block.stream.flags->check)});
  }
  return found;
}

// Behind the header of the first stream, whose second flag byte has the kind of its checksums.
Frame first_frame(const ByteSource& base) {
  std::array<std::byte, 12> header{};
  base.read_at(0, header);
  return {header.size(), 0, std::to_integer<std::uint32_t>(header[7]) & 15};
}

}  // namespace

const Packing kXzPacking = {.name = "xz",
                            .extension = "xz",
                            .recognises = is_xz,
                            .make_decoder = make_decoder,
                            .read_index = read_index,
                            .first_frame = first_frame};

}  // namespace npyfs
