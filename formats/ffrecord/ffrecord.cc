// SPDX-License-Identifier: Apache-2.0

#include "formats/ffrecord/ffrecord.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/extent_column.h"
#include "formats/bytes/string_list.h"
#include "formats/damage_list.h"
#include "formats/extents.h"
#include "formats/ffrecord/packed_folder.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kFixedNbytes = 12;      // checksum, N
constexpr std::uint64_t kPerSampleNbytes = 12;  // 4 of checksum, 8 of offset
constexpr std::uint64_t kChecksumsBegin = 12;

// Headers are read in pieces of this size. A multiple of 8, so that no offset straddles two.
constexpr std::size_t kBufferNbytes = 1 << 20;
// A header beyond this is not read only to find out what a file is.
constexpr std::uint64_t kSniffNbytes = 16 << 20;

// The first 12 bytes.
struct FixedHeader {
  std::uint32_t checksum = 0;
  std::int64_t samples = 0;

  std::uint64_t count() const { return static_cast<std::uint64_t>(samples); }
  std::uint64_t offsets_begin() const { return kChecksumsBegin + 4 * count(); }
  // Where the header ends and samples may begin.
  std::uint64_t nbytes() const { return kFixedNbytes + kPerSampleNbytes * count(); }
};

// `source` has at least 12 bytes.
FixedHeader read_fixed_header(const ByteSource& source) {
  std::byte bytes[kFixedNbytes];
  source.read_at(0, bytes);
  return {load_le<std::uint32_t>(bytes), load_le<std::int64_t>(bytes + 4)};
}

// Whether a header for so many samples fits into the file: only then may nbytes() be asked.
bool count_fits(const FixedHeader& header, const ByteSource& source) {
  return header.samples >= 0 &&
         header.count() <= (source.nbytes() - kFixedNbytes) / kPerSampleNbytes;
}

// Hands out [begin, end) of `source` piece by piece, each a multiple of 8 bytes but the last.
template <typename Consume>
void read_pieces(const ByteSource& source, std::uint64_t begin, std::uint64_t end,
                 std::vector<std::byte>& buffer, const Consume& consume) {
  while (begin < end) {
    buffer.resize(std::min<std::uint64_t>(kBufferNbytes, end - begin));
    source.read_at(begin, buffer);
    consume(std::span<const std::byte>(buffer));
    begin += buffer.size();
  }
}

// The samples' places, and which of them cannot be. Immutable once the table is made.
struct Samples : Checksums {
  SourcePtr source;
  ExtentColumn places;
  // The last sample, where it does not fit what `places` holds as three numbers: its end is the end
  // of the file, so that anything cut off or appended shows there.
  std::optional<ExtentColumn::Place> odd_last;
  DamageList damage;
  // Packed folders only: the samples' paths. The last sample is the folder's index and not shown.
  std::optional<StringList> paths;

  std::uint64_t size() const { return places.size() + (odd_last ? 1 : 0); }
  std::uint64_t shown() const { return size() - (paths ? 1 : 0); }
  ExtentColumn::Place operator[](std::uint64_t sample) const {
    return sample == places.size() ? *odd_last : places[sample];
  }
  std::optional<Checksum> checksum(std::uint64_t sample) const override {
    const ExtentColumn::Place place = (*this)[sample];
    return Checksum{Checksum::Kind::kCrc32,
                    {source.get(), place.offset, place.nbytes},
                    {source.get(), kChecksumsBegin + 4 * sample, 4}};
  }
  std::string name_of(std::uint64_t sample) const override {
    return paths && sample < paths->size() ? record_name(sample, (*paths)[sample])
                                           : fmt::format("record {}", sample);
  }
};

// Takes the offsets in file order and checks each sample as soon as the two offsets after it are
// known: its end, and what speaks for that end.
class SampleBuilder {
 public:
  SampleBuilder(Samples& samples, const FixedHeader& header) : samples_(samples), header_(header) {}

  void add_offset(std::int64_t offset) {
    window_[filled_++] = offset;
    if (filled_ == 3) {
      add_sample(window_[1], window_[2]);
      window_[0] = window_[1];
      window_[1] = window_[2];
      filled_ = 2;
    }
  }

  // The end of the last sample is that of the file.
  void finish() {
    const auto end = static_cast<std::int64_t>(samples_.source->nbytes());
    if (filled_ == 2) {
      add_sample(window_[1], std::nullopt);
      window_[0] = window_[1];
      filled_ = 1;
    }
    if (filled_ == 1) {
      add_sample(end, std::nullopt);
    }
    samples_.places.shrink();
  }

 private:
  // The sample from window_[0] to `end`; `after` is the end of the next sample, if it is stored.
  void add_sample(std::int64_t end, std::optional<std::int64_t> after) {
    const std::int64_t begin = window_[0];
    const std::uint64_t sample = next_++;
    const auto header_end = static_cast<std::int64_t>(header_.nbytes());
    const auto file_end = static_cast<std::int64_t>(samples_.source->nbytes());
    if (begin >= header_end && begin <= end && end <= file_end) {
      append({static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end - begin)});
      return;
    }
    std::optional<std::uint64_t> nbytes;
    const bool last = next_ == header_.count();
    if (!last && begin >= header_end && begin <= end && end <= after.value_or(end) &&
        end - begin <= file_end) {
      nbytes = static_cast<std::uint64_t>(end - begin);
    }
    const std::string_view fault = fault_of(begin, end);
    samples_.damage.add(sample, fault, [&] {
      return Damage{describe(sample, begin, end, fault), nbytes};
    });
    append_placeholder();
  }

  void append(ExtentColumn::Place place) {
    ExtentColumn& places = samples_.places;
    const std::uint64_t size = places.size();
    const bool fits = size < 2 || !places.equal() ||
                      (place.nbytes == places[0].nbytes &&
                       place.offset == places[size - 1].offset + places.stride());
    if (!fits && next_ == header_.count()) {
      samples_.odd_last = place;
    } else {
      places.append(place.offset, place.nbytes);
    }
  }

  // A damaged sample's place is never asked for: it takes the one that keeps the column small.
  void append_placeholder() {
    ExtentColumn& places = samples_.places;
    const std::uint64_t size = places.size();
    if (size == 0) {
      places.append(header_.nbytes(), 0);
    } else {
      const ExtentColumn::Place last = places[size - 1];
      places.append(last.offset + (places.equal() ? places.stride() : 0), last.nbytes);
    }
  }

  // One of the four; a header can have millions.
  static constexpr std::string_view kBeginsEarly = "begins early";
  static constexpr std::string_view kBeginsLate = "begins late";
  static constexpr std::string_view kEndsEarly = "ends early";
  static constexpr std::string_view kEndsLate = "ends late";

  std::string_view fault_of(std::int64_t begin, std::int64_t end) const {
    return begin < static_cast<std::int64_t>(header_.nbytes())            ? kBeginsEarly
           : begin > static_cast<std::int64_t>(samples_.source->nbytes()) ? kBeginsLate
           : end < begin                                                  ? kEndsEarly
                                                                          : kEndsLate;
  }

  Error describe(std::uint64_t sample, std::int64_t begin, std::int64_t end,
                 std::string_view fault) const {
    const ByteSource& source = *samples_.source;
    const std::uint64_t at = header_.offsets_begin() + 8 * sample;
    const auto file_end = static_cast<std::int64_t>(source.nbytes());
    if (fault == kBeginsEarly) {
      return corrupt_at(
          source.name(), at,
          fmt::format("the offset of sample {} is {}, expected {} (the end of the header) or more; "
                      "the sample cannot be read",
                      sample, begin, header_.nbytes()));
    }
    if (fault == kBeginsLate) {
      return corrupt_at(source.name(), at,
                        fmt::format("the offset of sample {} is {}, expected {} (the size of the "
                                    "file) or less; the file is cut short or damaged",
                                    sample, begin, file_end));
    }
    const std::string rule = fault == kEndsEarly
                                 ? fmt::format("{} (where it begins) or more", begin)
                                 : fmt::format("{} (the size of the file) or less", file_end);
    return corrupt_at(source.name(), at + 8,
                      fmt::format("the end of sample {} is {}, expected {}; the file is cut short "
                                  "or damaged",
                                  sample, end, rule));
  }

  Samples& samples_;
  FixedHeader header_;
  std::uint64_t next_ = 0;
  std::int64_t window_[3] = {};
  int filled_ = 0;
};

// The one pass over the header: places, and the CRC of what was read.
std::uint32_t read_header(const FixedHeader& header, Samples& samples) {
  const ByteSource& source = *samples.source;
  std::vector<std::byte> buffer;
  std::uint32_t crc = 0;
  read_pieces(source, 4, header.offsets_begin(), buffer,
              [&](std::span<const std::byte> piece) { crc = crc32(piece, crc); });
  SampleBuilder builder(samples, header);
  read_pieces(source, header.offsets_begin(), header.nbytes(), buffer,
              [&](std::span<const std::byte> piece) {
                crc = crc32(piece, crc);
                for (std::size_t at = 0; at < piece.size(); at += 8) {
                  builder.add_offset(load_le<std::int64_t>(piece.data() + at));
                }
              });
  builder.finish();
  return crc;
}

class SampleColumn : public ByteColumn {
 public:
  explicit SampleColumn(std::shared_ptr<const Samples> samples) : samples_(std::move(samples)) {}

  std::uint64_t size() const override { return samples_->shown(); }

  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const ExtentColumn::Place place = (*samples_)[record];
    out.assign(1, Extent{samples_->source.get(), place.offset, place.nbytes});
    return true;
  }

  const Damage* damage(std::uint64_t record) const override {
    return samples_->damage.find(record);
  }

  Guard guard(std::uint64_t record) const override { return {samples_.get(), record, 1}; }

  std::uint64_t run(std::uint64_t record) const override {
    if (record >= samples_->places.size()) {
      return 1;
    }
    return std::min(
        {samples_->places.run(record), samples_->damage.run(record, size()), size() - record});
  }

  std::optional<std::uint64_t> equal_nbytes() const override {
    if (size() == 0 || !samples_->places.equal() || samples_->odd_last ||
        !samples_->damage.empty()) {
      return std::nullopt;
    }
    return samples_->places[0].nbytes;
  }

 private:
  std::shared_ptr<const Samples> samples_;
};

class FfrecordTable : public RecordTable {
 public:
  explicit FfrecordTable(std::shared_ptr<const Samples> samples) : samples_(std::move(samples)) {
    auto column = std::make_shared<SampleColumn>(samples_);
    Field x;
    x.name = "x";
    x.bytes = column;
    x.maybe_pickled = !samples_->paths;
    x.extension = samples_->paths ? "bin" : "";  // files of all kinds
    fields_.push_back(std::move(x));
    stored_.push_back(StoredUnit{"", column});
  }

  std::uint64_t size() const override { return samples_->shown(); }
  KeyKind key_kind() const override { return samples_->paths ? KeyKind::kText : KeyKind::kNone; }
  std::string_view text_key(std::uint64_t record) const override {
    return (*samples_->paths)[record];
  }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return {samples_->source}; }
  const Damage* damage(std::uint64_t record) const override {
    return samples_->damage.find(record);
  }
  std::uint64_t damaged_count() const override { return samples_->damage.size(); }

 private:
  std::shared_ptr<const Samples> samples_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

// Reads the first 12 bytes; throws where the rest cannot be a header.
FixedHeader check_fixed_header(const ByteSource& source) {
  if (source.nbytes() < kFixedNbytes) {
    throw corrupt_at(source.name(), 0,
                     fmt::format("the size of the file is {}, expected {} or more; this is not a "
                                 "whole FFRecord file",
                                 source.nbytes(), kFixedNbytes));
  }
  const FixedHeader header = read_fixed_header(source);
  if (!count_fits(header, source)) {
    throw corrupt_at(
        source.name(), 4,
        fmt::format("the number of samples is {}, expected 0 to {} (what a header in "
                    "{} bytes can list); this is not a whole FFRecord file",
                    header.samples, (source.nbytes() - kFixedNbytes) / kPerSampleNbytes,
                    source.nbytes()));
  }
  if (header.checksum == 0 && header.samples == 0 && source.nbytes() > kFixedNbytes) {
    throw corrupt_at(source.name(), 0,
                     fmt::format("the header is empty, expected one for the {} bytes that follow; "
                                 "the writer did not finish, write the file again",
                                 source.nbytes() - kFixedNbytes));
  }
  return header;
}

// A last sample cut down to nothing has no byte whose reading could fail, so it is found here.
void check_empty_last(const FixedHeader& header, Samples& samples) {
  const std::uint64_t last = header.count() - 1;
  if (samples.size() == 0 || samples.damage.find(last) != nullptr || samples[last].nbytes > 0) {
    return;
  }
  const std::uint64_t at = kChecksumsBegin + 4 * last;
  std::byte stored[4];
  samples.source->read_at(at, stored);
  const auto checksum = load_le<std::uint32_t>(stored);
  if (checksum == 0) {
    return;
  }
  samples.damage.add(last, "checksum of nothing", [&] {
    return Damage{corrupt_at(samples.source->name(), at,
                             fmt::format("the checksum of sample {} is {:#010x}, expected 0 as it "
                                         "has no bytes; the file is cut short",
                                         last, checksum)),
                  std::nullopt};
  });
}

// The names of a packed folder's samples; nothing for any other file.
std::optional<StringList> read_paths(const Samples& samples, const OpenContext& context) {
  const std::uint64_t count = samples.size();
  if (count == 0 || samples.damage.find(count - 1) != nullptr) {
    return std::nullopt;
  }
  const ByteSource& source = *samples.source;
  const ExtentColumn::Place last = samples[count - 1];
  if (!is_folder_index(source, last.offset, last.nbytes)) {
    return std::nullopt;
  }
  if (!context.verifier->is_intact({&samples, count - 1, 1})) {
    context.warn(
        fmt::format("{} at byte {}: the index of the packed folder does not match its "
                    "checksum; all samples are shown, without names",
                    printable(source.name()), last.offset));
    return std::nullopt;
  }
  return read_folder_index(source, last.offset, last.nbytes, count - 1, context.warn);
}

bool recognises_ffrecord(const Location& location) {
  if (location.source == nullptr || location.source->nbytes() < kFixedNbytes) {
    return false;
  }
  const ByteSource& source = *location.source;
  const FixedHeader header = read_fixed_header(source);
  if (header.checksum == 0 || !count_fits(header, source) || header.nbytes() > kSniffNbytes) {
    return false;
  }
  std::vector<std::byte> buffer;
  std::uint32_t crc = 0;
  read_pieces(source, 4, header.nbytes(), buffer,
              [&](std::span<const std::byte> piece) { crc = crc32(piece, crc); });
  return crc == header.checksum;
}

std::shared_ptr<const RecordTable> open_ffrecord(const Location& location, OpenContext& context) {
  if (location.source == nullptr) {
    throw file_error(ErrorKind::kUnsupported, location.path, "not a file");
  }
  const ByteSource& source = *location.source;
  const FixedHeader header = check_fixed_header(source);
  auto samples = std::make_shared<Samples>();
  samples->source = location.source;
  const std::uint32_t crc = read_header(header, *samples);
  if (header.checksum == 0) {
    context.warn(fmt::format(
        "{} at byte 0: the header has no checksum (an old writer's); it is taken as it is",
        printable(source.name())));
  } else if (crc != header.checksum) {
    throw corrupt_at(source.name(), 0,
                     fmt::format("the checksum of the header is {:#010x}, expected {:#010x} for "
                                 "{} samples; the header is damaged, fetch the file again",
                                 header.checksum, crc, header.samples));
  }
  if (context.verifier->verifies()) {
    check_empty_last(header, *samples);
  }
  samples->damage.shrink();
  samples->paths = read_paths(*samples, context);
  return std::make_shared<FfrecordTable>(std::move(samples));
}

}  // namespace

const Format kFfrecord = {.name = "ffrecord",
                          .extensions = {"ffr"},
                          .recognises = recognises_ffrecord,
                          .open = open_ffrecord};

}  // namespace npyfs
