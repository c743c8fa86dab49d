// SPDX-License-Identifier: Apache-2.0
//
// liblzma as Python's lzma module uses it, which numcodecs does: .xz, .lzma ("alone") or raw.

#include <fmt/format.h>
#include <lzma.h>

#include <array>
#include <variant>

#include "formats/bytes/codecs/codecs.h"

namespace npyfs {

namespace {

// What a decoder may take: twice that of the strongest preset, whose dictionary is 64 MiB.
constexpr std::uint64_t kMostMemoryNbytes = std::uint64_t{130} << 20;

using FilterOptions = std::variant<lzma_options_lzma, lzma_options_delta, lzma_options_bcj>;

FilterOptions options_of(const LzmaFilter& filter) {
  if (filter.id == LZMA_FILTER_LZMA2 || filter.id == LZMA_FILTER_LZMA1) {
    lzma_options_lzma options{};
    if (lzma_lzma_preset(&options, filter.preset)) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("lzma: preset is {}, expected 0 to 9", filter.preset));
    }
    options.dict_size = filter.dict_nbytes.value_or(options.dict_size);
    options.lc = filter.lc.value_or(options.lc);
    options.lp = filter.lp.value_or(options.lp);
    options.pb = filter.pb.value_or(options.pb);
    return options;
  }
  if (filter.id == LZMA_FILTER_DELTA) {
    lzma_options_delta options{};
    options.type = LZMA_DELTA_TYPE_BYTE;
    options.dist = filter.dist;
    return options;
  }
  lzma_options_bcj options{};
  options.start_offset = filter.start_offset;
  return options;
}

class Lzma : public Codec {
 public:
  Lzma(LzmaFormat format, const std::vector<LzmaFilter>& filters)
      : Codec("lzma"), format_(format), filters_(filters) {
    if (format_ != LzmaFormat::kRaw) {
      return;
    }
    Chain chain;
    fill(chain);
    const std::uint64_t memory = lzma_raw_decoder_memusage(chain.filters.data());
    if (filters_.empty() || memory == UINT64_MAX) {
      throw Error(ErrorKind::kUnsupported, "lzma: a raw stream with filters liblzma does not take");
    }
    if (memory > kMostMemoryNbytes) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("lzma: decoding takes {} bytes of memory, expected at most {}",
                              memory, kMostMemoryNbytes));
    }
  }

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    lzma_stream stream = LZMA_STREAM_INIT;
    struct Ender {
      lzma_stream* stream;
      ~Ender() { lzma_end(stream); }
    };
    const Ender ender{&stream};
    start(stream);
    stream.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream.avail_in = in.size();
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream.avail_out = out.size();
    for (;;) {
      const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
      switch (result) {
        case LZMA_STREAM_END:
          return out.size() - stream.avail_out;
        case LZMA_OK:
          break;  // it has more to do
        case LZMA_BUF_ERROR:
          // Input or room has run out.
          if (stream.avail_out > 0 || stream.avail_in == 0) {
            throw damaged("the stream is cut");
          }
          return std::nullopt;
        case LZMA_MEM_ERROR:
          throw std::bad_alloc();
        case LZMA_MEMLIMIT_ERROR:
          throw damaged(fmt::format("decoding takes {} bytes of memory, expected at most {}",
                                    lzma_memusage(&stream), kMostMemoryNbytes));
        default:
          throw damaged(fmt::format("the stream is damaged (error {})", static_cast<int>(result)));
      }
    }
  }

 private:
  struct Chain {
    std::array<FilterOptions, LZMA_FILTERS_MAX> options;
    std::array<lzma_filter, LZMA_FILTERS_MAX + 1> filters;
  };

  void fill(Chain& chain) const {
    if (filters_.size() > LZMA_FILTERS_MAX) {
      throw Error(ErrorKind::kUnsupported, fmt::format("lzma: {} filters, expected at most {}",
                                                       filters_.size(), LZMA_FILTERS_MAX));
    }
    for (std::size_t i = 0; i < filters_.size(); ++i) {
      chain.options[i] = options_of(filters_[i]);
      chain.filters[i] = {
          filters_[i].id,
          std::visit([](auto& options) -> void* { return &options; }, chain.options[i])};
    }
    chain.filters[filters_.size()] = {LZMA_VLI_UNKNOWN, nullptr};
  }

  void start(lzma_stream& stream) const {
    lzma_ret result = LZMA_OK;
    switch (format_) {
      case LzmaFormat::kAuto:
        result = lzma_auto_decoder(&stream, kMostMemoryNbytes, LZMA_CONCATENATED);
        break;
      case LzmaFormat::kXz:
        result = lzma_stream_decoder(&stream, kMostMemoryNbytes, LZMA_CONCATENATED);
        break;
      case LzmaFormat::kAlone:
        result = lzma_alone_decoder(&stream, kMostMemoryNbytes);
        break;
      case LzmaFormat::kRaw: {
        Chain chain;
        fill(chain);
        result = lzma_raw_decoder(&stream, chain.filters.data());
        break;
      }
    }
    if (result == LZMA_MEM_ERROR) {
      throw std::bad_alloc();
    }
    if (result != LZMA_OK) {
      throw damaged(fmt::format("liblzma refuses the stream (error {})", static_cast<int>(result)));
    }
  }

  LzmaFormat format_;
  std::vector<LzmaFilter> filters_;
};

}  // namespace

CodecPtr make_lzma(LzmaFormat format, const std::vector<LzmaFilter>& filters) {
  return std::make_unique<Lzma>(format, filters);
}

}  // namespace npyfs
