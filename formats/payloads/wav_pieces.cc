// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/wav_pieces.h"

#include <algorithm>

namespace npyfs {

namespace {

class WavColumn : public Column {
 public:
  explicit WavColumn(std::shared_ptr<const WavPieces> waves) : waves_(std::move(waves)) {}

  std::uint64_t size() const override { return waves_->pieces.size(); }
  std::optional<std::uint32_t> rate_hz() const override { return waves_->rate_hz; }

  void inspect(std::uint64_t record, Item& item) const override {
    item.damage = waves_->damage.find(record);
    if (item.damage == nullptr) {
      const WavPiece& piece = waves_->pieces[record];
      item.dtype = wav_dtype(piece.sample);
      item.shape.assign({piece.frames, piece.channels});
    }
  }

  bool decoded(std::uint64_t record) const override {
    const WavPiece& piece = waves_->pieces[record];
    return wav_needs_decoding(piece.sample, piece.big_endian);
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const WavPiece& piece = waves_->pieces[record];
    plan.add_extent(*piece.source, piece.offset + range.begin, range.nbytes(), {});
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const WavPiece& piece = waves_->pieces[record];
    // Part by part: the samples of a long recording need not be held twice.
    constexpr std::uint64_t kPartSamples = std::uint64_t{1} << 18;
    const std::uint64_t from = wav_sample_nbytes(piece.sample);
    const std::uint64_t to = wav_dtype(piece.sample).itemsize;
    const std::uint64_t samples = piece.stored_nbytes() / from;
    std::vector<std::byte> stored;
    for (std::uint64_t done = 0; done < samples;) {
      const std::uint64_t count = std::min(kPartSamples, samples - done);
      stored.resize(count * from);
      piece.source->read_at(piece.offset + done * from, stored);
      decode_wav(piece.sample, piece.big_endian, stored, out.subspan(done * to, count * to));
      done += count;
    }
  }

 private:
  std::shared_ptr<const WavPieces> waves_;
};

}  // namespace

WavPiece cut_wav(const ByteSource& source, const WavHeader& header, std::uint64_t first,
                 std::uint64_t last) {
  last = std::min(last, header.frames);
  first = std::min(first, last);
  return {&source,       header.data_offset + first * header.frame_nbytes,
          last - first,  header.channels,
          header.sample, header.big_endian};
}

std::shared_ptr<const Column> make_wav_column(std::shared_ptr<const WavPieces> pieces) {
  return std::make_shared<WavColumn>(std::move(pieces));
}

}  // namespace npyfs
