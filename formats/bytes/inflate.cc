// SPDX-License-Identifier: Apache-2.0
//
// Deflate can be entered wherever a block begins, given the bit position and the 32 KiB decoded
// before it (zlib: inflatePrime, inflateSetDictionary; examples/zran.c shows the principle). For
// every `span` decoded bytes the last such place before them is kept, its window deflated again. A
// chunk is as long or, where memory allows few places, shorter: then what lies between the place
// and the chunk is inflated for nothing.

#include "formats/bytes/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "formats/bytes/crc.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// windowBits of inflateInit2.
constexpr int kGzip = 15 + 16;
constexpr int kZlib = 15;
constexpr int kRaw = -15;

constexpr std::size_t kWindowNbytes = std::size_t{32} << 10;
constexpr std::size_t kInputNbytes = std::size_t{64} << 10;
constexpr std::size_t kOutputNbytes = std::size_t{64} << 10;
// What the points may take while the size of the whole is not known yet: the first windows do not
// tell how well the others deflate.
constexpr std::uint64_t kScanBudgetNbytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kGzipTrailerNbytes = 8;

using WindowPtr = std::shared_ptr<const std::vector<std::byte>>;

// Where decoding can begin.
struct Point {
  std::uint64_t in_offset = 0;   // of the next whole byte to feed
  std::uint64_t out_offset = 0;  // of the first byte that comes out
  std::uint8_t bits = 0;         // of the byte before in_offset that are still to be fed
  bool at_header = true;         // a gzip or zlib header begins here, `window` is null
  WindowPtr window;              // deflated
};

Bytef* to_zlib(std::byte* bytes) { return reinterpret_cast<Bytef*>(bytes); }

// A z_stream and the bytes it is fed from.
class Inflater {
 public:
  Inflater(const ByteSource& base, int window_bits) : base_(base), input_(kInputNbytes) {
    check(inflateInit2(&stream_, window_bits));
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& stream() { return stream_; }
  // Of the next byte to be fed.
  std::uint64_t in_offset() const { return fetched_offset_ - stream_.avail_in; }
  bool at_end() const { return in_offset() >= base_.nbytes(); }

  void seek(std::uint64_t in_offset) {
    fetched_offset_ = in_offset;
    stream_.avail_in = 0;
  }

  // The next `nbytes` bytes (at most the buffer's size), fewer at the end of the base; not
  // consumed.
  std::span<const std::byte> peek(std::size_t nbytes) {
    if (stream_.avail_in < nbytes) {
      refill();
    }
    return {reinterpret_cast<const std::byte*>(stream_.next_in),
            std::min<std::size_t>(nbytes, stream_.avail_in)};
  }

  // Inflates into `out`, feeding as needed, as far as `flush` lets zlib go in one call. Returns
  // zlib's code, Z_BUF_ERROR where the base ends too soon; `produced` counts what came out.
  int step(std::span<std::byte> out, int flush, std::size_t& produced) {
    if (stream_.avail_in == 0) {
      refill();
    }
    stream_.next_out = to_zlib(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, flush);
    produced = out.size() - stream_.avail_out;
    return code;
  }

  void restart(int window_bits) { check(inflateReset2(&stream_, window_bits)); }

  void check(int code) {
    if (code != Z_OK) {
      throw file_error(ErrorKind::kCorrupt, base_.name(),
                       fmt::format("zlib cannot go on: {}", zError(code)));
    }
  }

 private:
  void refill() {
    const std::uint64_t from = in_offset();
    const std::size_t n = std::min<std::uint64_t>(input_.size(), base_.nbytes() - from);
    base_.read_at(from, std::span(input_).first(n));
    fetched_offset_ = from + n;
    stream_.next_in = to_zlib(input_.data());
    stream_.avail_in = static_cast<uInt>(n);
  }

  const ByteSource& base_;
  std::vector<std::byte> input_;
  std::uint64_t fetched_offset_ = 0;
  z_stream stream_{};
};

// What one pass over the stream found.
struct Scan {
  std::vector<Point> points;  // point i is the last one not after i * span
  std::uint64_t span_nbytes = 0;
  std::uint64_t nbytes = 0;
  std::optional<Error> damage;
  std::uint64_t vouched_nbytes = 0;  // decoded bytes of members whose checksum held
  bool cut = false;                  // the damage is the end of the base
  std::uint32_t crc = 0;             // of all decoded bytes, of a raw stream only
};

// Of an undamaged stream.
void write_scan(const Scan& scan, PageWriter& page) {
  page.number(scan.span_nbytes);
  page.number(scan.nbytes);
  page.number(scan.points.size());
  const std::vector<std::byte>* last_window = nullptr;
  for (const Point& point : scan.points) {
    page.number(point.in_offset);
    page.number(point.out_offset);
    page.number(point.bits);
    page.flag(point.at_header);
    // Several points may be one place.
    const bool is_new = point.window != nullptr && point.window.get() != last_window;
    page.flag(is_new);
    if (is_new) {
      last_window = point.window.get();
      page.array(std::span<const std::byte>(*last_window));
    }
  }
}

Scan read_scan(PageReader& page, const ByteSource& base) {
  Scan scan;
  scan.span_nbytes = page.number();
  scan.vouched_nbytes = scan.nbytes = page.number();
  PageReader::require(scan.span_nbytes > 0);
  const std::uint64_t spans =
      scan.nbytes / scan.span_nbytes + (scan.nbytes % scan.span_nbytes != 0 ? 1 : 0);
  const std::uint64_t count = page.number();
  PageReader::require(count >= spans);
  WindowPtr window;
  for (std::uint64_t i = 0; i < count; ++i) {
    Point point;
    point.in_offset = page.number(base.nbytes());
    point.out_offset = page.number(scan.nbytes);
    point.bits = static_cast<std::uint8_t>(page.number(7));
    point.at_header = page.flag();
    if (page.flag()) {
      const auto bytes = page.array<std::byte>();
      window = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    }
    point.window = point.at_header ? nullptr : window;
    PageReader::require((point.at_header || window != nullptr) &&
                        (i >= spans || point.out_offset <= i * scan.span_nbytes) &&
                        (point.bits == 0 || point.in_offset > 0));
    scan.points.push_back(std::move(point));
  }
  return scan;
}

// Makes a Scan. One use.
class Scanner {
 public:
  // A stream that decodes to more than `most_nbytes` is damaged.
  Scanner(const ByteSource& base, int window_bits, const InflateOptions& options,
          std::uint64_t most_nbytes = UINT64_MAX)
      : base_(base),
        window_bits_(window_bits),
        most_nbytes_(most_nbytes),
        budget_nbytes_per_gib_(options.budget_nbytes_per_gib),
        budget_nbytes_(options.budget_nbytes),
        sink_(options.sink),
        inflater_(base, window_bits),
        output_(kOutputNbytes) {
    scan_.span_nbytes = options.span_nbytes;
  }

  Scan run() {
    while (inflate_member() && next_member()) {
    }
    thin_out_to(budget());
    scan_.points.shrink_to_fit();
    return std::move(scan_);
  }

 private:
  // False where the stream is damaged.
  bool inflate_member() {
    candidate_ = Point{inflater_.in_offset(), scan_.nbytes, 0, true, nullptr};
    window_.clear();
    for (;;) {
      std::size_t produced = 0;
      const int code = inflater_.step(output_, Z_BLOCK, produced);
      scan_.nbytes += produced;
      if (window_bits_ == kRaw) {
        scan_.crc = crc32(std::span(output_).first(produced), scan_.crc);
      }
      if (sink_) {
        sink_(std::span<const std::byte>(output_).first(produced));
      }
      keep_points();
      if (scan_.nbytes > most_nbytes_) {
        scan_.damage = corrupt_at(base_.name(), inflater_.in_offset(),
                                  fmt::format("the compressed stream decodes to more than the {} "
                                              "bytes it should have; the file is damaged",
                                              most_nbytes_));
        return false;
      }
      if (code == Z_STREAM_END) {
        scan_.vouched_nbytes = scan_.nbytes;
        return true;
      }
      if (code != Z_OK && !(code == Z_BUF_ERROR && !inflater_.at_end())) {
        note_damage(code);
        return false;
      }
      note_block_start();
    }
  }

  // After a member's end: whether another begins. Anything but a member or padding is a damage.
  bool next_member() {
    const auto head = inflater_.peek(3);
    if (window_bits_ == kGzip && is_gzip(head)) {
      inflater_.restart(kGzip);
      return true;
    }
    const std::uint64_t end_offset = inflater_.in_offset();
    if (const auto other = first_nonzero(end_offset)) {
      scan_.damage = corrupt_at(base_.name(), *other,
                                "what follows the end of the compressed stream is no such stream, "
                                "expected the end of the file; the file is damaged");
    }
    return false;
  }

  std::optional<std::uint64_t> first_nonzero(std::uint64_t offset) {
    while (offset < base_.nbytes()) {
      const std::size_t n = std::min<std::uint64_t>(output_.size(), base_.nbytes() - offset);
      base_.read_at(offset, std::span(output_).first(n));
      const auto end = output_.begin() + static_cast<std::ptrdiff_t>(n);
      const auto found =
          std::find_if(output_.begin(), end, [](std::byte b) { return b != std::byte{0}; });
      if (found != end) {
        return offset + static_cast<std::uint64_t>(found - output_.begin());
      }
      offset += n;
    }
    return std::nullopt;
  }

  // Remembers a block's start as the place to begin from. Copying the window costs 32 KiB, so
  // starts that lie close together are passed over: a stream of tiny blocks must not take for ever.
  void note_block_start() {
    z_stream& stream = inflater_.stream();
    const bool at_block = (stream.data_type & 128) != 0;
    const bool after_last = (stream.data_type & 64) != 0;
    const std::uint64_t least = std::min<std::uint64_t>(scan_.span_nbytes / 16, kWindowNbytes * 2);
    if (!at_block || after_last ||
        scan_.nbytes < candidate_.out_offset + std::max<std::uint64_t>(least, 1)) {
      return;
    }
    uInt n = kWindowNbytes;
    window_.resize(kWindowNbytes);
    inflater_.check(inflateGetDictionary(&stream, to_zlib(window_.data()), &n));
    window_.resize(n);
    candidate_ = Point{inflater_.in_offset(), scan_.nbytes,
                       static_cast<std::uint8_t>(stream.data_type & 7), false, nullptr};
  }

  // For what has been decoded.
  std::uint64_t budget() const {
    return std::min(budget_nbytes_, ((scan_.nbytes >> 10) * budget_nbytes_per_gib_) >> 20);
  }

  // Gives every span whose start has been decoded its point.
  void keep_points() {
    while (scan_.points.size() * scan_.span_nbytes < scan_.nbytes) {
      if (!candidate_.at_header && candidate_.window == nullptr) {
        candidate_.window = deflate_window();
      }
      const bool shared = !scan_.points.empty() && candidate_.window != nullptr &&
                          scan_.points.back().window == candidate_.window;
      scan_.points.push_back(candidate_);
      used_nbytes_ += sizeof(Point) + (shared ? 0 : window_nbytes(candidate_));
      thin_out_to(std::min(budget_nbytes_, std::max(budget(), kScanBudgetNbytes)));
    }
  }

  WindowPtr deflate_window() const {
    uLongf n = compressBound(window_.size());
    auto deflated = std::make_shared<std::vector<std::byte>>(n);
    const int code = compress2(to_zlib(deflated->data()), &n,
                               reinterpret_cast<const Bytef*>(window_.data()), window_.size(), 1);
    if (code != Z_OK) {
      throw file_error(ErrorKind::kIo, base_.name(), "no memory for an access point");
    }
    deflated->resize(n);
    deflated->shrink_to_fit();
    return deflated;
  }

  static std::uint64_t window_nbytes(const Point& point) {
    return point.window == nullptr ? 0 : point.window->size();
  }

  void thin_out_to(std::uint64_t most_nbytes) {
    while (used_nbytes_ > most_nbytes && scan_.points.size() > 1) {
      thin_out();
    }
  }

  // Doubles the span: the points of even spans are those of the spans of twice the size.
  void thin_out() {
    std::vector<Point> kept;
    used_nbytes_ = 0;
    for (std::size_t i = 0; i < scan_.points.size(); i += 2) {
      const bool shared = !kept.empty() && kept.back().window == scan_.points[i].window;
      used_nbytes_ += sizeof(Point) + (shared ? 0 : window_nbytes(scan_.points[i]));
      kept.push_back(std::move(scan_.points[i]));
    }
    scan_.points = std::move(kept);
    scan_.span_nbytes *= 2;
  }

  void note_damage(int code) {
    scan_.cut = code == Z_BUF_ERROR;
    const char* msg = inflater_.stream().msg;
    const std::string found = scan_.cut             ? "cut short"
                              : code == Z_NEED_DICT ? "made with a preset dictionary"
                              : msg != nullptr      ? fmt::format("damaged ({})", msg)
                                                    : fmt::format("damaged ({})", zError(code));
    scan_.damage = corrupt_at(
        base_.name(), inflater_.in_offset(),
        fmt::format("the compressed stream is {} after {} decoded bytes, expected a whole {} "
                    "stream; get the file again",
                    found, scan_.nbytes,
                    window_bits_ == kGzip   ? "gzip"
                    : window_bits_ == kZlib ? "zlib"
                                            : "deflate"));
  }

  const ByteSource& base_;
  int window_bits_;
  std::uint64_t most_nbytes_;
  std::uint64_t budget_nbytes_per_gib_;
  std::uint64_t budget_nbytes_;
  const std::function<void(std::span<const std::byte>)>& sink_;
  Inflater inflater_;
  std::vector<std::byte> output_;
  Scan scan_;
  Point candidate_;
  std::vector<std::byte> window_;  // of candidate_, plain
  std::uint64_t used_nbytes_ = 0;
};

// Chunk i is the decoded bytes from i * chunk_nbytes on.
class InflatedChunks : public ChunkSource {
 public:
  // A chunk lies within a span.
  InflatedChunks(SourcePtr base, int window_bits, std::uint64_t chunk_nbytes, Scan scan)
      : base_(std::move(base)),
        window_bits_(window_bits),
        chunk_nbytes_(chunk_nbytes),
        scan_(std::move(scan)) {}

  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    return std::min(chunk_nbytes_, scan_.nbytes - chunk * chunk_nbytes_);
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out, DecodeContext&) const override {
    const std::uint64_t begin = chunk * chunk_nbytes_;
    const Point& point = scan_.points[begin / scan_.span_nbytes];
    Inflater inflater(*base_, point.at_header ? window_bits_ : kRaw);
    enter(point, inflater);
    bool raw = !point.at_header;
    std::vector<std::byte> skipped(kOutputNbytes);
    std::uint64_t to_skip = begin - point.out_offset;
    while (to_skip > 0 || !out.empty()) {
      const auto into =
          to_skip > 0 ? std::span(skipped).first(std::min<std::uint64_t>(skipped.size(), to_skip))
                      : out.first(std::min<std::size_t>(out.size(), 1U << 30));
      std::size_t produced = 0;
      const int code = inflater.step(into, Z_NO_FLUSH, produced);
      if (to_skip > 0) {
        to_skip -= produced;
      } else {
        out = out.subspan(produced);
      }
      if (code == Z_STREAM_END && (to_skip > 0 || !out.empty())) {
        enter_next_member(inflater, raw);
      } else if (code != Z_OK && produced == 0) {
        throw unreadable(inflater, code);
      }
    }
  }

 private:
  void enter(const Point& point, Inflater& inflater) const {
    inflater.seek(point.in_offset);
    if (point.at_header) {
      return;
    }
    if (point.bits > 0) {
      std::byte last{};
      base_->read_at(point.in_offset - 1, {&last, 1});
      inflater.check(inflatePrime(&inflater.stream(), point.bits,
                                  std::to_integer<int>(last) >> (8 - point.bits)));
    }
    std::vector<std::byte> window(kWindowNbytes);
    uLongf n = kWindowNbytes;
    inflater.check(uncompress(to_zlib(window.data()), &n,
                              reinterpret_cast<const Bytef*>(point.window->data()),
                              point.window->size()));
    inflater.check(
        inflateSetDictionary(&inflater.stream(), to_zlib(window.data()), static_cast<uInt>(n)));
  }

  void enter_next_member(Inflater& inflater, bool& raw) const {
    if (raw) {
      inflater.seek(inflater.in_offset() + kGzipTrailerNbytes);
    }
    if (window_bits_ != kGzip || inflater.at_end()) {
      throw unreadable(inflater, Z_STREAM_END);
    }
    inflater.restart(kGzip);
    raw = false;
  }

  // The scan has decoded these bytes, so they are no longer what they were.
  Error unreadable(const Inflater& inflater, int code) const {
    return corrupt_at(base_->name(), inflater.in_offset(),
                      fmt::format("the compressed stream is unreadable ({}), expected what it held "
                                  "when it was opened; mount again",
                                  zError(code)));
  }

  SourcePtr base_;
  int window_bits_;
  std::uint64_t chunk_nbytes_;
  Scan scan_;
};

// The longest that is not above `most` and that the doubled span is a multiple of.
std::uint64_t chunk_nbytes_of(std::uint64_t first_span_nbytes, std::uint64_t span_nbytes,
                              std::uint64_t most) {
  std::uint64_t nbytes = first_span_nbytes;
  while (nbytes < span_nbytes && 2 * nbytes <= most) {
    nbytes *= 2;
  }
  return nbytes;
}

SourcePtr make_source(SourcePtr base, int window_bits, Scan scan, ChunkCache& cache,
                      const InflateOptions& options) {
  const std::uint64_t nbytes = scan.nbytes;
  const std::uint64_t chunk_nbytes =
      chunk_nbytes_of(options.span_nbytes, scan.span_nbytes, options.chunk_nbytes);
  // A chunk, and what lies between the point before it and the chunk.
  const char* name = window_bits == kGzip ? "gzip" : (window_bits == kRaw ? "deflate" : "zlib");
  std::string access = fmt::format("{}, a random read inflates up to {} KiB", name,
                                   (std::min(scan.span_nbytes, nbytes) + 1023) / 1024);
  auto chunks = std::make_unique<InflatedChunks>(base, window_bits, chunk_nbytes, std::move(scan));
  return std::make_shared<CachedSource>(std::move(base), nbytes, chunk_nbytes, std::move(chunks),
                                        cache, std::move(access));
}

std::optional<int> window_bits_of(const ByteSource& base) {
  std::vector<std::byte> head(std::min<std::uint64_t>(base.nbytes(), 3));
  base.read_at(0, head);
  return is_gzip(head) ? std::optional(kGzip) : is_zlib(head) ? std::optional(kZlib) : std::nullopt;
}

}  // namespace

bool is_gzip(std::span<const std::byte> head) {
  return head.size() >= 3 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b} &&
         head[2] == std::byte{8};
}

bool is_zlib(std::span<const std::byte> head) {
  if (head.size() < 2) {
    return false;
  }
  const unsigned cmf = std::to_integer<unsigned>(head[0]);
  const unsigned flags = std::to_integer<unsigned>(head[1]);
  return (cmf & 15) == 8 && (cmf >> 4) <= 7 && (cmf * 256 + flags) % 31 == 0;
}

std::vector<std::byte> inflate_head(const ByteSource& base, std::size_t nbytes) {
  const auto window_bits = window_bits_of(base);
  if (!window_bits) {
    return {};
  }
  Inflater inflater(base, *window_bits);
  std::vector<std::byte> head(nbytes);
  std::size_t done = 0;
  while (done < nbytes) {
    std::size_t produced = 0;
    const int code = inflater.step(std::span(head).subspan(done), Z_NO_FLUSH, produced);
    done += produced;
    if (code == Z_STREAM_END && *window_bits == kGzip && is_gzip(inflater.peek(3))) {
      inflater.restart(kGzip);
    } else if (code != Z_OK && !(code == Z_BUF_ERROR && !inflater.at_end())) {
      break;
    }
  }
  head.resize(done);
  return head;
}

SourcePtr open_inflated(SourcePtr base, ChunkCache& cache, const InflateOptions& options) {
  const auto window_bits = window_bits_of(*base);
  if (!window_bits) {
    throw corrupt_at(base->name(), 0, "the file is neither gzip nor zlib, expected one of them");
  }
  PageKey key;
  key.add("inflated 1");
  key.add(std::to_string(options.span_nbytes));
  const bool is_kept = options.index != nullptr && key.add_source(*base);
  if (is_kept && !options.sink) {
    auto kept =
        find_page(*options.index, key, [&](PageReader& page) { return read_scan(page, *base); });
    if (kept) {
      return make_source(std::move(base), *window_bits, std::move(*kept), cache, options);
    }
  }
  Scan scan = Scanner(*base, *window_bits, options).run();
  if (is_kept && !options.sink && !scan.damage) {
    options.index->keep(key, [&](PageWriter& page) { write_scan(scan, page); });
  }
  if (scan.damage) {
    const bool offer_all = scan.cut || options.content_is_checked;
    scan.nbytes = offer_all ? scan.nbytes : scan.vouched_nbytes;
    if (!options.permissive || scan.nbytes == 0) {
      throw Error(*scan.damage);
    }
    if (options.warn) {
      options.warn(fmt::format("{}; the {} decoded bytes before it are shown", scan.damage->what(),
                               scan.nbytes));
    }
  }
  return make_source(std::move(base), *window_bits, std::move(scan), cache, options);
}

void inflate_raw(const ByteSource& base, ByteRange range, std::span<std::byte> out) {
  const auto damaged = [&](std::uint64_t offset, const std::string& how) {
    return corrupt_at(base.name(), offset,
                      fmt::format("the deflate stream {}, expected it to decode to {} bytes; the "
                                  "file is damaged",
                                  how, out.size()));
  };
  Inflater inflater(base, kRaw);
  inflater.seek(range.begin);
  std::size_t done = 0;
  std::byte beyond{};
  for (;;) {
    // One byte more than there should be, to see that there is none.
    const bool full = done == out.size();
    const std::span<std::byte> into =
        full ? std::span(&beyond, 1)
             : out.subspan(done, std::min<std::size_t>(out.size() - done, 1U << 30));
    std::size_t produced = 0;
    const int code = inflater.step(into, Z_NO_FLUSH, produced);
    if (full && produced > 0) {
      throw damaged(inflater.in_offset(), "goes on");
    }
    done += produced;
    if (inflater.in_offset() > range.end) {
      throw damaged(range.end, "goes on beyond its end");
    }
    if (code == Z_STREAM_END) {
      break;
    }
    if (code != Z_OK && !(code == Z_BUF_ERROR && !inflater.at_end())) {
      throw damaged(inflater.in_offset(), code == Z_BUF_ERROR ? "is cut" : "is damaged");
    }
  }
  if (done < out.size()) {
    throw damaged(inflater.in_offset(), fmt::format("ends after {} bytes", done));
  }
}

std::vector<std::byte> inflate_raw_head(const ByteSource& base, ByteRange range,
                                        std::size_t nbytes) {
  Inflater inflater(base, kRaw);
  inflater.seek(range.begin);
  std::vector<std::byte> head(nbytes);
  std::size_t done = 0;
  while (done < nbytes && inflater.in_offset() <= range.end) {
    std::size_t produced = 0;
    const int code = inflater.step(std::span(head).subspan(done), Z_NO_FLUSH, produced);
    done += produced;
    if (code != Z_OK && !(code == Z_BUF_ERROR && !inflater.at_end())) {
      break;
    }
  }
  head.resize(done);
  return head;
}

SourcePtr open_deflated(SourcePtr base, std::uint64_t nbytes, std::uint32_t crc, ChunkCache& cache,
                        const InflateOptions& options) {
  Scan scan = Scanner(*base, kRaw, options, nbytes).run();
  if (scan.damage) {
    throw Error(*scan.damage);
  }
  if (scan.nbytes != nbytes || scan.crc != crc) {
    throw corrupt_at(
        base->name(), 0,
        fmt::format("the stream decodes to {} bytes of CRC-32 {:#010x}, expected {} of "
                    "{:#010x}; the file is damaged",
                    scan.nbytes, scan.crc, nbytes, crc));
  }
  return make_source(std::move(base), kRaw, std::move(scan), cache, options);
}

}  // namespace npyfs
