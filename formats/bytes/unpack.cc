// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/unpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/bytes/inflate.h"

namespace npyfs {

namespace {

constexpr std::size_t kOutputNbytes = std::size_t{256} << 10;
constexpr std::uint64_t kLeastChunkNbytes = std::uint64_t{1} << 20;
// Frames that are smaller are entered together: pzstd's and bgzip's are a few KiB.
constexpr std::uint64_t kLeastFrameNbytes = std::uint64_t{256} << 10;
// Beyond this, data that deflates so well is a bomb. Zeroes do so 20,000 times.
constexpr std::uint64_t kAmpleNbytes = std::uint64_t{16} << 30;
constexpr std::uint64_t kMostInflation = 4096;

std::string nbytes_text(std::uint64_t nbytes) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  return nbytes < 10 * kMiB ? fmt::format("{} KiB", (nbytes + 1023) / 1024)
                            : fmt::format("{} MiB", nbytes / kMiB);
}

using Sink = std::function<void(std::span<const std::byte>)>;

struct FrameList {
  std::vector<Frame> frames;
  std::uint64_t nbytes = 0;
  std::optional<Error> damage;  // behind the frames

  std::uint64_t end_of(std::size_t frame) const {
    return frame + 1 < frames.size() ? frames[frame + 1].out_offset : nbytes;
  }

  void write(PageWriter& page) const {
    page.number(nbytes);
    page.array(std::span(frames));
  }
  static FrameList read(PageReader& page, const ByteSource& base) {
    FrameList list;
    list.nbytes = page.number();
    PageReader::require(list.nbytes <= kAmpleNbytes ||
                        list.nbytes / kMostInflation <= base.nbytes());
    const auto frames = page.array<Frame>();
    list.frames.assign(frames.begin(), frames.end());
    PageReader::require(!frames.empty() || list.nbytes == 0);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      PageReader::require(
          frames[i].in_offset < base.nbytes() &&
          (i == 0 ? frames[i].out_offset == 0 : frames[i - 1].out_offset <= frames[i].out_offset) &&
          frames[i].out_offset <= list.nbytes);
    }
    return list;
  }
};

// Decodes everything once. One use.
class FrameScanner {
 public:
  FrameScanner(const ByteSource& base, const Packing& packing, const Sink& sink)
      : base_(base),
        packing_(packing),
        sink_(sink),
        reader_(base, packing),
        output_(kOutputNbytes) {}

  FrameList run() {
    try {
      packing_.read_index != nullptr ? scan_index() : scan_frames();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      list_.damage = error;
      // The frame that was being decoded is none.
      list_.nbytes = good_nbytes_;
    }
    return std::move(list_);
  }

 private:
  void scan_index() {
    const FrameIndex found = packing_.read_index(base_);
    for (const Frame& block : found.frames) {
      if (block.out_offset != good_nbytes_) {
        throw corrupt_at(base_.name(), block.in_offset,
                         fmt::format("the {} file's index says that a block begins {} decoded "
                                     "bytes in, expected {} as the blocks before it have; the file "
                                     "is damaged",
                                     packing_.name, block.out_offset, good_nbytes_));
      }
      decode(block);
      list_.frames.push_back(block);
      list_.nbytes = good_nbytes_ = block.out_offset + decoded_;
    }
    if (list_.nbytes != found.nbytes) {
      throw corrupt_at(base_.name(), base_.nbytes(),
                       fmt::format("the {} file's index tells of {} decoded bytes, its blocks have "
                                   "{}; the file is damaged",
                                   packing_.name, found.nbytes, list_.nbytes));
    }
  }

  void scan_frames() {
    for (Frame frame; frame.in_offset < base_.nbytes(); frame.in_offset = reader_.in_offset()) {
      if (frame.in_offset > 0 && !is_frame(frame.in_offset)) {
        require_padding(frame.in_offset);
        return;
      }
      frame.out_offset = good_nbytes_;
      decode(frame);
      for (const Frame& entry : entries_) {
        if (list_.frames.empty() ||
            entry.out_offset - list_.frames.back().out_offset >= kLeastFrameNbytes) {
          list_.frames.push_back(entry);
        }
      }
      list_.nbytes = good_nbytes_ = frame.out_offset + decoded_;
    }
  }

  void decode(const Frame& frame) {
    reader_.enter(frame);
    entries_.assign(1, frame);
    decoded_ = 0;
    while (!reader_.at_end()) {
      const std::size_t n = reader_.read(output_);
      decoded_ += n;
      const std::uint64_t total = frame.out_offset + decoded_;
      if (total > kAmpleNbytes && total / kMostInflation > reader_.in_offset()) {
        throw file_error(ErrorKind::kTooLarge, base_.name(),
                         fmt::format("its first {} bytes decode to more than {}, expected at most "
                                     "{} times as many; no data set does",
                                     reader_.in_offset(), nbytes_text(total), kMostInflation));
      }
      if (reader_.entry() && total - entries_.back().out_offset >= kLeastFrameNbytes) {
        entries_.push_back(*reader_.entry());
        entries_.back().out_offset = total;
      }
      if (sink_) {
        sink_(std::span<const std::byte>(output_).first(n));
      }
    }
  }

  bool is_frame(std::uint64_t at) const {
    std::vector<std::byte> head(std::min<std::uint64_t>(4, base_.nbytes() - at));
    base_.read_at(at, head);
    return packing_.recognises(head);
  }

  void require_padding(std::uint64_t at) {
    while (at < base_.nbytes()) {
      const std::size_t n = std::min<std::uint64_t>(output_.size(), base_.nbytes() - at);
      base_.read_at(at, std::span(output_).first(n));
      if (std::any_of(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(n),
                      [](std::byte b) { return b != std::byte{0}; })) {
        throw corrupt_at(base_.name(), at,
                         fmt::format("what follows the end of the {} stream is no such stream, "
                                     "expected the end of the file; the file is damaged",
                                     packing_.name));
      }
      at += n;
    }
  }

  const ByteSource& base_;
  const Packing& packing_;
  const Sink& sink_;
  FrameReader reader_;
  std::vector<std::byte> output_;
  FrameList list_;
  std::vector<Frame> entries_;     // of the frame being decoded, its start the first
  std::uint64_t decoded_ = 0;      // of the same
  std::uint64_t good_nbytes_ = 0;  // of the frames before
};

// Each frame is a chunk or, where it is larger than `most`, several.
class FrameChunks : public ChunkSource {
 public:
  // No chunk is larger than `most`, nor do the decoders that wait take more in all.
  FrameChunks(SourcePtr base, const Packing& packing, FrameList list, std::uint64_t most,
              std::shared_ptr<PausedDecoders> paused)
      : base_(std::move(base)),
        packing_(packing),
        list_(std::move(list)),
        most_(most),
        paused_(std::move(paused)) {
    for (std::size_t i = 0; i < list_.frames.size(); ++i) {
      for (std::uint64_t at = list_.frames[i].out_offset; at < list_.end_of(i); at += most) {
        begins_.push_back(at);
      }
    }
  }

  ~FrameChunks() override { paused_->take(serial()); }

  std::uint64_t nbytes() const { return list_.nbytes; }
  // The number of the chunk that holds this byte.
  std::uint64_t find(std::uint64_t offset) const {
    return static_cast<std::uint64_t>(std::upper_bound(begins_.begin(), begins_.end(), offset) -
                                      begins_.begin()) -
           1;
  }
  std::uint64_t begin(std::uint64_t chunk) const { return begins_[chunk]; }

  std::uint64_t chunk_nbytes(std::uint64_t chunk) const override {
    const std::uint64_t end = chunk + 1 < begins_.size() ? begins_[chunk + 1] : list_.nbytes;
    return end - begins_[chunk];
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const std::uint64_t begin = begins_[chunk];
    const auto next =
        std::upper_bound(list_.frames.begin(), list_.frames.end(), begin,
                         [](std::uint64_t at, const Frame& f) { return at < f.out_offset; });
    std::unique_ptr<PausedDecoder> paused = resume(*(next - 1), begin);
    FrameReader& reader = paused->reader;
    std::vector<std::byte> skipped;
    std::uint64_t to_skip = begin - paused->at;
    while (to_skip > 0 || !out.empty()) {
      skipped.resize(std::min<std::uint64_t>(to_skip, kOutputNbytes));
      const std::size_t n = reader.read(to_skip > 0 ? std::span(skipped) : out);
      if (to_skip > 0) {
        to_skip -= n;
      } else {
        out = out.subspan(n);
      }
      if (reader.at_end() && (to_skip > 0 || !out.empty())) {
        paused->frame = {.in_offset = reader.in_offset()};
        if (packing_.read_index != nullptr || paused->frame.in_offset >= base_->nbytes()) {
          throw corrupt_at(base_->name(), paused->frame.in_offset,
                           "the compressed stream is not what it was when it was opened, expected "
                           "the same; mount again");
        }
        reader.enter(paused->frame);
      }
    }
    paused->at = begin + chunk_nbytes(chunk);
    paused->nbytes = reader.memory_nbytes();
    paused_->put(std::move(paused), most_);
  }

  // The most that one read of a few bytes decodes.
  std::uint64_t largest_frame() const {
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < list_.frames.size(); ++i) {
      most = std::max(most, list_.end_of(i) - list_.frames[i].out_offset);
    }
    return most;
  }

 private:
  // A reader within `frame`, not behind `begin`.
  std::unique_ptr<PausedDecoder> resume(const Frame& frame, std::uint64_t begin) const {
    std::unique_ptr<PausedDecoder> paused = paused_->take(serial());
    if (paused != nullptr && paused->at <= begin && paused->at > frame.out_offset) {
      // What it has in its buffer was read for a chunk before: this one depends on the file, too.
      std::byte byte{};
      base_->read_at(frame.in_offset, {&byte, 1});
      return paused;
    }
    paused = std::make_unique<PausedDecoder>(*base_, packing_, serial());
    paused->frame = frame;
    paused->at = frame.out_offset;
    paused->reader.enter(frame);
    return paused;
  }

  SourcePtr base_;
  const Packing& packing_;
  FrameList list_;
  std::uint64_t most_;
  std::shared_ptr<PausedDecoders> paused_;
  std::vector<std::uint64_t> begins_;
};

class FramedSource : public ByteSource {
 public:
  FramedSource(SourcePtr base, std::unique_ptr<const FrameChunks> chunks, std::string access,
               ChunkCache& cache)
      : ByteSource(base->name(), chunks->nbytes(), base->mtime_ns()),
        base_(std::move(base)),
        chunks_(std::move(chunks)),
        access_(std::move(access)),
        cache_(cache) {}

  Identity identity() const override { return base_->identity(); }
  std::string path() const override { return base_->path(); }
  void check_unchanged() const override { base_->check_unchanged(); }
  bool changed() const override { return base_->changed(); }
  std::string access() const override { return access_; }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t chunk = chunks_->find(offset);
      const std::uint64_t within = offset - chunks_->begin(chunk);
      const auto block = cache_.get(*chunks_, chunk);
      const std::uint64_t n =
          std::min<std::uint64_t>(out.size(), block->nbytes_from(within, *this));
      std::copy_n(block->bytes.begin() + static_cast<std::ptrdiff_t>(within), n, out.begin());
      offset += n;
      out = out.subspan(n);
    }
  }

  SourcePtr base_;
  std::unique_ptr<const FrameChunks> chunks_;
  std::string access_;
  ChunkCache& cache_;
};

void warn_of_cost(const ByteSource& base, const Packing& packing, std::uint64_t frame_nbytes,
                  std::uint64_t most, const UnpackOptions& options) {
  if (options.warn && !options.pool->told_cost) {
    options.warn(
        file_error(ErrorKind::kTooLarge, base.name(),
                   fmt::format("it can be decoded only from the start of a {} frame of {}, more "
                               "than the {} that --cache-size allows at once: a random read (of "
                               "this or another such shard) decodes {} on average; --cache-dir "
                               "DIR keeps all of it decoded, in DIR",
                               packing.name, nbytes_text(frame_nbytes), nbytes_text(most),
                               nbytes_text(frame_nbytes / 2)))
            .what());
  }
  options.pool->told_cost = true;
}

// Writes to the spool until that fails, which is said once and no reason to stop.
class SpoolWriter {
 public:
  explicit SpoolWriter(const UnpackOptions& options)
      : options_(options), spool_(options.pool->spool) {
    if (spool_ != nullptr) {
      attempt([&] { spool_->begin(); });
    }
  }
  // What was not finished takes no room.
  ~SpoolWriter() {
    if (spool_ != nullptr) {
      spool_->drop();
    }
  }
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;
  Sink sink() {
    if (spool_ == nullptr) {
      return nullptr;
    }
    return [this](std::span<const std::byte> bytes) {
      attempt([&] { spool_->append(bytes); });
      nbytes_ += bytes.size();
    };
  }
  // Null where there is no spool, it failed, or has another number of bytes.
  SourcePtr finish(const SourcePtr& base, std::uint64_t nbytes) {
    SourcePtr spooled;
    if (spool_ != nullptr && nbytes == nbytes_) {
      attempt([&] { spooled = Spool::finish(spool_, base); });
    }
    return spooled;
  }

 private:
  template <typename Action>
  void attempt(const Action& action) {
    if (failed_) {
      return;
    }
    try {
      action();
    } catch (const Error& error) {
      failed_ = true;
      spool_->drop();
      if (options_.warn) {
        options_.warn(fmt::format("{}; this shard is decoded where it is read", error.what()));
      }
    }
  }

  const UnpackOptions& options_;
  std::shared_ptr<Spool> spool_;
  bool failed_ = false;
  std::uint64_t nbytes_ = 0;
};

SourcePtr open_gzip(SourcePtr base, ChunkCache& cache, const UnpackOptions& options,
                    SpoolWriter& writer) {
  InflateOptions inflate;
  inflate.permissive = options.permissive;
  inflate.warn = options.warn;
  inflate.index = options.index;
  inflate.sink = writer.sink();
  SourcePtr inflated = open_inflated(base, cache, inflate);
  // A damaged stream offers less than what was decoded.
  SourcePtr spooled = writer.finish(base, inflated->nbytes());
  return spooled != nullptr ? spooled : inflated;
}

FrameList find_frames(const ByteSource& base, const Packing& packing, const Sink& sink,
                      const UnpackOptions& options) {
  PageKey key;
  key.add("frames 1");
  key.add(packing.name);
  const bool is_kept = options.index != nullptr && key.add_source(base);
  if (is_kept && !sink) {
    auto kept = find_page(*options.index, key,
                          [&](PageReader& page) { return FrameList::read(page, base); });
    if (kept) {
      return std::move(*kept);
    }
  }
  FrameList list = FrameScanner(base, packing, sink).run();
  if (is_kept && !sink && !list.damage) {
    options.index->keep(key, [&](PageWriter& page) { list.write(page); });
  }
  return list;
}

SourcePtr open_framed(SourcePtr base, const Packing& packing, ChunkCache& cache,
                      const UnpackOptions& options, SpoolWriter& writer) {
  const Sink sink = writer.sink();
  FrameList list = find_frames(*base, packing, sink, options);
  if (list.damage) {
    if (!options.permissive || list.nbytes == 0) {
      throw Error(*list.damage);
    }
    if (options.warn) {
      options.warn(fmt::format("{}; the {} decoded bytes before that frame are shown",
                               list.damage->what(), list.nbytes));
    }
  } else if (SourcePtr spooled = writer.finish(base, list.nbytes)) {
    return spooled;
  }
  const std::uint64_t most = std::max(options.pool->cache_nbytes / 8, kLeastChunkNbytes);
  auto chunks = std::make_unique<const FrameChunks>(base, packing, std::move(list), most,
                                                    options.pool->paused);
  const std::uint64_t largest = chunks->largest_frame();
  if (largest > most) {
    warn_of_cost(*base, packing, largest, most, options);
  }
  std::string access =
      fmt::format("{}, a random read decodes up to {}", packing.name, nbytes_text(largest));
  return std::make_shared<FramedSource>(std::move(base), std::move(chunks), std::move(access),
                                        cache);
}

}  // namespace

SourcePtr open_unpacked(SourcePtr base, ChunkCache& cache, const UnpackOptions& options) {
  const Packing* packing = find_packing(*base);
  if (packing == nullptr) {
    throw corrupt_at(base->name(), 0,
                     "the first bytes are not those of a compressed file, expected one");
  }
  SpoolWriter writer(options);
  return packing->make_decoder == nullptr
             ? open_gzip(std::move(base), cache, options, writer)
             : open_framed(std::move(base), *packing, cache, options, writer);
}

}  // namespace npyfs
