// SPDX-License-Identifier: Apache-2.0
//
// Example{1: Features}; SequenceExample{1: Features, 2: FeatureLists}
// Features{1: {1: key, 2: Feature}...}; FeatureLists{1: {1: key, 2: FeatureList}...}
// FeatureList{1: Feature...}; Feature{1: BytesList | 2: FloatList | 3: Int64List}; each list {1:
// v...}

#include "formats/tfrecord/example.h"

#include <fmt/format.h>

#include <cstring>

#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

// Longer names are legal, but a name that long is a file that cannot be listed anyway.
constexpr std::uint64_t kMaxNameNbytes = std::uint64_t{64} << 10;

[[noreturn]] void fail(const WireBytes& bytes, std::uint64_t offset, std::string_view text) {
  throw WireFault(corrupt_at(bytes.name(), offset, text));
}

void add_slice(const WireBytes& bytes, ByteRange slice, std::vector<ByteRange>& slices) {
  if (slices.size() == kMaxSlices) {
    const Error error = corrupt_at(
        bytes.name(), slice.begin,
        fmt::format("the number of strings or lists of a feature is {} and more, expected at most "
                    "{}",
                    kMaxSlices + 1, kMaxSlices));
    throw WireFault({ErrorKind::kTooLarge, error.what()});
  }
  slices.push_back(slice);
}

// One map entry {1: key, 2: value}, in any order. A value given in several pieces is all of them,
// merged; a missing key is the empty one.
struct Entry {
  std::string key;
  std::vector<ByteRange> values;
};

void read_key(const WireBytes& bytes, ByteRange place, std::string& key) {
  if (place.nbytes() > kMaxNameNbytes) {
    fail(bytes, place.begin,
         fmt::format("a feature's name has {} bytes, expected at most {}", place.nbytes(),
                     kMaxNameNbytes));
  }
  const auto text = bytes.at(place.begin, place.nbytes());
  key.assign(reinterpret_cast<const char*>(text.data()), text.size());
  if (!is_utf8(key)) {
    fail(bytes, place.begin, "a feature's name is not UTF-8, expected UTF-8");
  }
}

void parse_entry(const WireBytes& bytes, ByteRange range, Entry& entry) {
  entry.key.clear();
  entry.values.clear();
  WireReader reader(bytes, range);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    if (tag.is(1, WireType::kBytes)) {
      read_key(bytes, reader.length_delimited(), entry.key);
    } else if (tag.is(2, WireType::kBytes)) {
      add_slice(bytes, reader.length_delimited(), entry.values);
    } else {
      reader.skip(tag);
    }
  }
}

// Calls `take(Entry&)` for every entry of a Features or FeatureLists message.
template <typename Take>
void parse_map(const WireBytes& bytes, ByteRange range, Entry& entry, const Take& take) {
  WireReader reader(bytes, range);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    if (tag.is(1, WireType::kBytes)) {
      parse_entry(bytes, reader.length_delimited(), entry);
      take(entry);
    } else {
      reader.skip(tag);
    }
  }
}

// Calls `take(kind, place)` for every list of a Feature message.
template <typename Take>
void each_list(const WireBytes& bytes, ByteRange range, const Take& take) {
  WireReader reader(bytes, range);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    if (tag.type == WireType::kBytes && tag.field >= 1 && tag.field <= 3) {
      take(static_cast<ValueKind>(tag.field), reader.length_delimited());
    } else {
      reader.skip(tag);
    }
  }
}

// Reads Feature messages into a FeatureValue.
class FeatureParser {
 public:
  explicit FeatureParser(const WireBytes& bytes) : bytes_(bytes) {}

  void begin(FeatureValue& value) {
    value.clear();
    pieces_ = 0;
  }

  // Merges one Feature message: the last kind of the oneof counts, the same kind again appends.
  void merge(ByteRange range, FeatureValue& value) {
    each_list(bytes_, range, [&](ValueKind kind, ByteRange place) {
      if (kind != value.kind) {
        begin(value);
        value.kind = kind;
      }
      merge_list(place, value);
    });
  }

  // Settles how the values are to be had.
  void end(FeatureValue& value) const {
    value.decoded_nbytes = value.kind == ValueKind::kBytes
                               ? value.decoded_nbytes
                               : value.values * value_itemsize(value.kind);
    value.direct = value.kind == ValueKind::kBytes;
    if (value.kind == ValueKind::kFloat && pieces_ <= 1) {
      value.direct = true;
      value.slices.clear();
      if (pieces_ == 1) {
        value.slices.push_back(piece_);
      }
    }
  }

 private:
  void merge_list(ByteRange range, FeatureValue& value) {
    if (value.kind != ValueKind::kBytes) {
      add_slice(bytes_, range, value.slices);
    }
    WireReader reader(bytes_, range);
    while (!reader.done()) {
      const Tag tag = reader.tag();
      if (tag.field != 1 || !merge_values(tag.type, reader, value)) {
        reader.skip(tag);
      }
    }
  }

  // False where a value of this kind cannot have that wire type: an unknown field then.
  bool merge_values(WireType type, WireReader& reader, FeatureValue& value) {
    const bool packed = type == WireType::kBytes;
    if (value.kind == ValueKind::kBytes && packed) {
      const ByteRange place = reader.length_delimited();
      add_slice(bytes_, place, value.slices);
      value.decoded_nbytes += place.nbytes();
      ++value.values;
    } else if (value.kind == ValueKind::kFloat && packed) {
      merge_floats(reader.length_delimited(), value);
    } else if (value.kind == ValueKind::kFloat && type == WireType::kFixed32) {
      merge_floats(reader.fixed(4), value);
    } else if (value.kind == ValueKind::kInt64 && packed) {
      value.values += count_varints(bytes_, reader.length_delimited());
    } else if (value.kind == ValueKind::kInt64 && type == WireType::kVarint) {
      reader.varint();
      ++value.values;
    } else {
      return false;
    }
    return true;
  }

  void merge_floats(ByteRange place, FeatureValue& value) {
    if (place.nbytes() % 4 != 0) {
      fail(bytes_, place.begin,
           fmt::format("packed floats take {} bytes, expected a multiple of 4", place.nbytes()));
    }
    if (!place.empty()) {
      piece_ = place;
      ++pieces_;
    }
    value.values += place.nbytes() / 4;
  }

  const WireBytes& bytes_;
  // Runs of float bytes seen, and the last of them.
  std::uint64_t pieces_ = 0;
  ByteRange piece_;
};

// Adds one FeatureList message's steps to `value`.
void merge_feature_list(const WireBytes& bytes, ByteRange range, FeatureParser& parser,
                        FeatureValue& step, FeatureValue& value) {
  value.slices.push_back(range);
  WireReader reader(bytes, range);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    if (!tag.is(1, WireType::kBytes)) {
      reader.skip(tag);
      continue;
    }
    parser.begin(step);
    parser.merge(reader.length_delimited(), step);
    parser.end(step);
    if (value.steps == 0) {
      value.step_nbytes = step.decoded_nbytes;
    }
    value.steps_differ = value.steps_differ || step.decoded_nbytes != value.step_nbytes;
    ++value.steps;
    value.values += step.values;
    value.decoded_nbytes += step.decoded_nbytes;
    if (step.kind != ValueKind::kNone) {
      value.kind =
          value.kind == ValueKind::kNone || value.kind == step.kind ? step.kind : ValueKind::kMixed;
    }
  }
}

void put(const WireBytes& bytes, std::uint64_t offset, std::span<const std::byte> value,
         std::span<std::byte> out, std::size_t& position) {
  if (value.size() > out.size() - position) {
    fail(bytes, offset, "there are more values than when the file was indexed; mount again");
  }
  std::memcpy(out.data() + position, value.data(), value.size());
  position += value.size();
}

void decode_int64(const WireBytes& bytes, WireReader& reader, std::uint64_t offset,
                  std::span<std::byte> out, std::size_t& position) {
  const std::uint64_t value = reader.varint();
  put(bytes, offset, std::as_bytes(std::span(&value, 1)), out, position);
}

void decode_list(const WireBytes& bytes, ByteRange range, ValueKind kind, std::span<std::byte> out,
                 std::size_t& position) {
  WireReader reader(bytes, range);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    const bool is_int = kind == ValueKind::kInt64;
    if (tag.is(1, WireType::kBytes) && is_int) {
      const ByteRange packed = reader.length_delimited();
      WireReader varints(bytes, packed);
      while (!varints.done()) {
        decode_int64(bytes, varints, packed.begin, out, position);
      }
    } else if (tag.is(1, WireType::kBytes)) {
      const ByteRange place = reader.length_delimited();
      put(bytes, place.begin, bytes.at(place.begin, place.nbytes()), out, position);
    } else if (tag.is(1, WireType::kVarint) && is_int) {
      decode_int64(bytes, reader, range.begin, out, position);
    } else if (tag.is(1, WireType::kFixed32) && kind == ValueKind::kFloat) {
      const ByteRange place = reader.fixed(4);
      put(bytes, place.begin, bytes.at(place.begin, 4), out, position);
    } else {
      reader.skip(tag);
    }
  }
}

// The values of one Feature message: as FeatureParser::merge has it, only the last run of lists of
// one kind counts.
void decode_feature(const WireBytes& bytes, ByteRange range, std::span<std::byte> out,
                    std::size_t& position) {
  auto last_kind = ValueKind::kNone;
  std::uint64_t run_begin = range.begin;
  each_list(bytes, range, [&](ValueKind kind, ByteRange place) {
    run_begin = kind == last_kind ? run_begin : place.begin;
    last_kind = kind;
  });
  each_list(bytes, range, [&](ValueKind kind, ByteRange place) {
    if (place.begin >= run_begin) {
      decode_list(bytes, place, kind, out, position);
    }
  });
}

}  // namespace

std::uint64_t value_itemsize(ValueKind kind) {
  switch (kind) {
    case ValueKind::kFloat:
      return 4;
    case ValueKind::kInt64:
      return 8;
    default:
      return 1;
  }
}

void FeatureValue::clear() {
  kind = ValueKind::kNone;
  direct = false;
  slices.clear();
  values = 0;
  decoded_nbytes = 0;
  steps = 0;
  step_nbytes = 0;
  steps_differ = false;
}

void parse_example(const WireBytes& bytes, ByteRange range, MessageKind kind, FeatureSink& sink) {
  FeatureParser parser(bytes);
  FeatureValue value;
  FeatureValue step;
  Entry entry;
  const auto take_feature = [&](Entry& found) {
    parser.begin(value);
    for (const ByteRange& place : found.values) {
      parser.merge(place, value);
    }
    parser.end(value);
    sink.feature(found.key, value);
  };
  const auto take_list = [&](Entry& found) {
    value.clear();
    for (const ByteRange& place : found.values) {
      merge_feature_list(bytes, place, parser, step, value);
    }
    sink.feature_list(found.key, value);
  };
  WireReader reader(bytes, range);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    if (tag.is(1, WireType::kBytes)) {
      parse_map(bytes, reader.length_delimited(), entry, take_feature);
    } else if (tag.is(2, WireType::kBytes) && kind == MessageKind::kSequenceExample) {
      parse_map(bytes, reader.length_delimited(), entry, take_list);
    } else {
      reader.skip(tag);
    }
  }
}

void decode_values(const WireBytes& bytes, ByteRange slice, SliceKind kind,
                   std::span<std::byte> out, std::size_t& position) {
  if (kind == SliceKind::kFloatList) {
    decode_list(bytes, slice, ValueKind::kFloat, out, position);
  } else if (kind == SliceKind::kInt64List) {
    decode_list(bytes, slice, ValueKind::kInt64, out, position);
  } else {
    WireReader reader(bytes, slice);
    while (!reader.done()) {
      const Tag tag = reader.tag();
      if (tag.is(1, WireType::kBytes)) {
        decode_feature(bytes, reader.length_delimited(), out, position);
      } else {
        reader.skip(tag);
      }
    }
  }
}

}  // namespace npyfs
