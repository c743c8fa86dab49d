// SPDX-License-Identifier: Apache-2.0

#include "formats/tfrecord/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "formats/bytes/crc.h"
#include "formats/extents.h"

namespace npyfs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using ByteVector = std::vector<std::byte>;

const std::string kData = NPYFS_TEST_DATA "/tfrecord/";

class KeepAllCache : public ChunkCache {
 public:
  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override {
    auto& block = blocks_[{&chunks, chunk}];
    if (block == nullptr) {
      auto made = std::make_shared<Block>();
      decode_block(chunks, chunk, strict_verifier(), *made);
      block = made;
    }
    return block;
  }

 private:
  std::map<std::pair<const ChunkSource*, std::uint64_t>, std::shared_ptr<const Block>> blocks_;
};

ByteVector read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::vector<char> chars((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ByteVector bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

// The data of a version 1.0 .npy file.
ByteVector npy_data(const std::string& path) {
  const ByteVector file = read_file(kData + path);
  const auto header =
      std::to_integer<std::size_t>(file.at(8)) + 256 * std::to_integer<std::size_t>(file.at(9));
  return {file.begin() + static_cast<long>(10 + header), file.end()};
}

// An opened source, and how to look at it.
struct Opened {
  KeepAllCache cache;
  std::vector<std::string> warnings;
  std::shared_ptr<const RecordTable> table;

  const Field* find(const std::string& name) const {
    for (const Field& field : table->fields()) {
      if (field.name == name) {
        return &field;
      }
    }
    return nullptr;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Field& field : table->fields()) {
      names.push_back(field.name);
    }
    return names;
  }

  Item item(const std::string& name, std::uint64_t record) const {
    Item item;
    find(name)->typed->inspect(record, item);
    return item;
  }

  // The values of one record, empty where it lacks them.
  ByteVector values(const std::string& name, std::uint64_t record) const {
    const Field* field = find(name);
    return field->bytes != nullptr ? stored(*field->bytes, record) : typed(*field->typed, record);
  }

  ByteVector all_values(const std::string& name) const {
    ByteVector all;
    for (std::uint64_t record = 0; record < table->size(); ++record) {
      const ByteVector one = table->damage(record) ? ByteVector() : values(name, record);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  static ByteVector stored(const ByteColumn& column, std::uint64_t record) {
    ByteVector out(stored_nbytes(column, record));
    read_stored(column, record, 0, out);
    return out;
  }

  static ByteVector typed(const Column& column, std::uint64_t record) {
    Item item;
    column.inspect(record, item);
    if (!item.present) {
      return {};
    }
    ByteVector out(*element_count(item.shape) * item.dtype.itemsize);
    if (column.decoded(record)) {
      DecodeContext context(strict_verifier());
      column.decode(record, out, context);
      return out;
    }
    Plan plan;
    column.plan(record, {0, out.size()}, plan);
    EXPECT_EQ(plan.nbytes(), out.size());
    std::size_t at = 0;
    for (const Piece& piece : plan.pieces()) {
      EXPECT_EQ(piece.kind, Piece::Kind::kExtent);
      piece.source->read_at(piece.offset, std::span(out).subspan(at, piece.nbytes));
      at += piece.nbytes;
    }
    return out;
  }
};

struct Options {
  bool permissive = false;
  const Verifier* verifier = &strict_verifier();
  std::map<std::string, std::string> decode = {};
};

std::unique_ptr<Opened> open_source(const SourcePtr& source, const Options& options = {}) {
  auto opened = std::make_unique<Opened>();
  OpenContext context;
  context.permissive = options.permissive;
  context.verifier = options.verifier;
  context.decode = options.decode;
  context.cache = &opened->cache;
  context.warn = [&](const std::string& text) { opened->warnings.push_back(text); };
  Location location{source->name(), false, source};
  opened->table = kTfrecord.open(location, context);
  return opened;
}

std::unique_ptr<Opened> open_file(const std::string& name, const Options& options = {}) {
  return open_source(FileSource::open(kData + name, name), options);
}

std::unique_ptr<Opened> open_bytes(ByteVector bytes, const Options& options = {}) {
  return open_source(std::make_shared<MemorySource>("m.tfrecord", std::move(bytes)), options);
}

std::string refusal(const std::string& name, const Options& options = {}) {
  try {
    open_file(name, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
    return error.what();
  }
  return "";
}

bool recognised(const std::string& name) {
  const Location location{name, false, FileSource::open(kData + name, name)};
  return kTfrecord.recognises(location);
}

template <typename T>
void put(ByteVector& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// One framed record.
ByteVector framed(const std::string& payload) {
  ByteVector out;
  put(out, std::uint64_t{payload.size()});
  put(out, mask_crc32c(crc32c(out)));
  const auto bytes = std::as_bytes(std::span(payload));
  out.insert(out.end(), bytes.begin(), bytes.end());
  put(out, mask_crc32c(crc32c(bytes)));
  return out;
}

ByteVector file_of(const std::vector<std::string>& payloads) {
  ByteVector file;
  for (const std::string& payload : payloads) {
    const ByteVector record = framed(payload);
    file.insert(file.end(), record.begin(), record.end());
  }
  return file;
}

// A length-delimited field; its content stays below 128 bytes.
std::string sub(int field, const std::string& content) {
  EXPECT_LT(content.size(), 128U);
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(content.size())} +
         content;
}

// A map entry of Features.
std::string feature(const std::string& name, const std::string& value) {
  return sub(1, sub(1, name) + sub(2, value));
}

std::string example(const std::string& entries) { return sub(1, entries); }

std::string int_list(const std::string& varints) { return sub(3, sub(1, varints)); }
std::string float_list(const std::string& floats) { return sub(2, sub(1, floats)); }
std::string bytes_list(const std::string& value) { return sub(1, sub(1, value)); }

const std::string kOne("\x00\x00\x80\x3f", 4);  // 1.0f

TEST(Tfrecord, IsRecognisedByItsFirstChecksum) {
  for (const char* name : {"raw_f32.tfrecord", "one_empty_record.tfrecord", "example_full.tfrecord",
                           "example_full_gzip.tfrecord.gz", "example_full_zlib.tfrecord"}) {
    EXPECT_TRUE(recognised(name)) << name;
  }
  for (const char* name : {"empty.tfrecord", "bad/garbage.tfrecord", "bad/five_bytes.tfrecord",
                           "bad/text_file.tfrecord", "bad/unmasked_crc.tfrecord", "cases.json"}) {
    EXPECT_FALSE(recognised(name)) << name;
  }
}

TEST(Tfrecord, RawPayloadsAreX) {
  const auto opened = open_file("raw_f32.tfrecord");
  EXPECT_THAT(opened->names(), ElementsAre("x"));
  EXPECT_EQ(opened->table->size(), 12U);
  EXPECT_EQ(opened->table->fields()[0].bytes->equal_nbytes(), 72U);
  EXPECT_EQ(opened->all_values("x"), npy_data("expected/raw-bytes/train/x.npy"));
  EXPECT_EQ(Opened::stored(*opened->table->stored()[0].bytes, 5),
            read_file(kData + "expected/raw/train/records/5.bin"));
  for (std::uint64_t record = 0; record < 12; ++record) {
    const Guard guard = opened->find("x")->bytes->guard(record);
    ASSERT_NE(guard.checksums, nullptr);
    EXPECT_EQ(guard.first, record);
    EXPECT_TRUE(strict_verifier().is_intact(guard));
  }
}

TEST(Tfrecord, LengthsVaryAndMayBeNought) {
  EXPECT_EQ(open_file("raw_varlen.tfrecord")->all_values("x"),
            npy_data("expected/raw_varlen/train/x.npy"));
  EXPECT_EQ(open_file("one_empty_record.tfrecord")->table->size(), 1U);
  const auto empty = open_file("empty.tfrecord");
  EXPECT_EQ(empty->table->size(), 0U);
  EXPECT_THAT(empty->names(), ElementsAre("x"));
}

// Zeroes, but for some pieces.
class SparseSource : public ByteSource {
 public:
  SparseSource(std::uint64_t nbytes, std::map<std::uint64_t, ByteVector> pieces)
      : ByteSource("sparse.tfrecord", nbytes, 0), pieces_(std::move(pieces)) {}
  mutable std::uint64_t read_nbytes = 0;

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_nbytes += out.size();
    std::fill(out.begin(), out.end(), std::byte{0});
    for (const auto& [begin, piece] : pieces_) {
      for (std::size_t i = 0; i < piece.size(); ++i) {
        if (begin + i >= offset && begin + i - offset < out.size()) {
          out[begin + i - offset] = piece[i];
        }
      }
    }
  }

  std::map<std::uint64_t, ByteVector> pieces_;
};

TEST(Tfrecord, RecordsMayLieBeyond4GiBAndAreNotReadToGetThere) {
  const std::uint64_t huge = (std::uint64_t{1} << 32) + 5;
  const ByteVector first = framed("first");
  const ByteVector last = framed("last");
  ByteVector header;
  put(header, huge);
  put(header, mask_crc32c(crc32c(header)));
  const std::uint64_t last_offset = first.size() + 16 + huge;
  const auto source = std::make_shared<SparseSource>(
      last_offset + last.size(),
      std::map<std::uint64_t, ByteVector>{{0, first}, {first.size(), header}, {last_offset, last}});
  const auto opened = open_source(source);
  ASSERT_EQ(opened->table->size(), 3U);
  EXPECT_EQ(stored_nbytes(*opened->find("x")->bytes, 1), huge);
  EXPECT_EQ(opened->values("x", 2)[0], std::byte{'l'});
  EXPECT_LT(source->read_nbytes, std::uint64_t{2} << 20);
}

// Whether records are verified is for the reader to say.
TEST(Tfrecord, GuardsAreStatedWhereNothingIsVerified) {
  const auto opened = open_file("raw_f32.tfrecord", {.verifier = &trusting_verifier()});
  EXPECT_NE(opened->find("x")->bytes->guard(0).checksums, nullptr);
}

class WholeExample : public testing::TestWithParam<const char*> {};

TEST_P(WholeExample, GivesAFieldPerFeature) {
  const auto opened = open_file(GetParam());
  EXPECT_THAT(opened->names(),
              ElementsAre("image/encoded", "image/format", "label", "shape", "x", "z"));
  EXPECT_THAT(opened->warnings, IsEmpty());
  for (const std::string name : {"label", "shape", "x", "z"}) {
    EXPECT_EQ(opened->all_values(name), npy_data("expected/example/train/" + name + ".npy"));
  }
  for (const std::string name : {"encoded", "format"}) {
    EXPECT_EQ(opened->all_values("image/" + name),
              npy_data("expected/example/train/image%2F" + name + ".npy"));
  }
  EXPECT_EQ(opened->item("label", 3).shape, Shape{});
  EXPECT_EQ(opened->item("z", 3).shape, Shape{3});
  EXPECT_EQ(opened->item("z", 3).dtype.text(), "<i8");
  EXPECT_EQ(opened->find("x")->typed->uniform()->shape, Shape{12});
  EXPECT_FALSE(opened->find("x")->typed->decoded(0));
  EXPECT_TRUE(opened->find("z")->typed->decoded(0));
}

INSTANTIATE_TEST_SUITE_P(Tfrecord, WholeExample,
                         testing::Values("example_full.tfrecord", "example_full_gzip.tfrecord.gz",
                                         "example_full_zlib.tfrecord"));

TEST(Tfrecord, PlanTakesPartsOfAnItem) {
  const auto opened = open_file("example_full.tfrecord");
  const auto& column = *opened->find("x")->typed;
  Plan plan;
  column.plan(4, {8, 20}, plan);
  ASSERT_THAT(plan.pieces(), SizeIs(1));
  ByteVector part(12);
  plan.pieces()[0].source->read_at(plan.pieces()[0].offset, part);
  const ByteVector whole = opened->values("x", 4);
  EXPECT_EQ(part, ByteVector(whole.begin() + 8, whole.begin() + 20));
  EXPECT_EQ(plan.pieces()[0].guard.first, 4U);
}

TEST(Tfrecord, DecodeRawKeepsThePayload) {
  const auto opened = open_file("example_full.tfrecord", {.decode = {{"x", "raw"}}});
  EXPECT_THAT(opened->names(), ElementsAre("x"));
  EXPECT_EQ(opened->all_values("x"), npy_data("expected/example-raw/train/x.npy"));
}

TEST(Tfrecord, FeaturesMayBeMissingOrRagged) {
  const auto opened = open_file("example_ragged.tfrecord");
  EXPECT_EQ(opened->all_values("id"), npy_data("expected/ragged/train/id.npy"));
  EXPECT_EQ(opened->all_values("seq"), npy_data("expected/ragged/train/seq.npy"));
  EXPECT_FALSE(opened->item("seq", 1).present);
  EXPECT_EQ(opened->item("seq", 0).shape, Shape{1});
  EXPECT_EQ(opened->find("id")->typed->uniform()->shape, Shape{});
  EXPECT_EQ(opened->find("names")->extension, "bin");
  EXPECT_EQ(opened->values("names", 2).size(), 12U);
  EXPECT_EQ(opened->item("empty_int", 5).shape, Shape{0});
}

TEST(Tfrecord, AllWireVariantsAreRead) {
  const auto opened = open_file("example_wire_variants.tfrecord", {.permissive = true});
  EXPECT_THAT(opened->names(), ElementsAre("", "i", "x", "y"));
  for (const std::string name : {"i", "x", "y"}) {
    EXPECT_EQ(opened->all_values(name), npy_data("expected/wire/train/" + name + ".npy"));
  }
  EXPECT_EQ(opened->item("y", 8).shape, Shape{});
  EXPECT_FALSE(opened->item("x", 9).present);
  ASSERT_EQ(opened->table->damaged_count(), 1U);
  const std::string text = opened->table->damage(15)->error.what();
  EXPECT_THAT(text, HasSubstr("example_wire_variants.tfrecord at byte "));
  EXPECT_THAT(text, HasSubstr("not UTF-8"));
  EXPECT_THAT(text, HasSubstr("its checksum holds"));
  EXPECT_NE(opened->item("x", 15).damage, nullptr);
  EXPECT_EQ(Opened::stored(*opened->table->stored()[0].bytes, 15).size(), 18U);
}

TEST(Tfrecord, WhatIsNoExampleStaysBytes) {
  const auto opened = open_file("example_bad_wire.tfrecord");
  EXPECT_THAT(opened->names(), ElementsAre("x"));
  EXPECT_EQ(opened->table->damaged_count(), 0U);
  EXPECT_EQ(opened->all_values("x"), npy_data("expected/bad-wire/train/x.npy"));
}

TEST(Tfrecord, MalformedPayloadsAreDamagedAlone) {
  ByteVector file = framed(example(feature("a", int_list("\x01"))));
  const ByteVector bad = read_file(kData + "example_bad_wire.tfrecord");
  file.insert(file.end(), bad.begin(), bad.end());
  const auto opened = open_bytes(file);
  EXPECT_EQ(opened->table->size(), 9U);
  EXPECT_EQ(opened->table->damaged_count(), 8U);
  EXPECT_THAT(opened->names(), ElementsAre("a"));
  EXPECT_EQ(opened->values("a", 0).size(), 8U);
}

// Millions of them must not cost a text each.
TEST(Tfrecord, OnlyTheFirstMalformedPayloadsAreDescribed) {
  std::vector<std::string> payloads(3000, "\x01");
  payloads[0] = example(feature("a", int_list("\x01")));
  const auto opened = open_bytes(file_of(payloads));
  EXPECT_EQ(opened->table->damaged_count(), 2999U);
  EXPECT_THAT(opened->table->damage(1024)->error.what(), HasSubstr("record 1024 is no valid"));
  EXPECT_EQ(opened->table->damage(1025), opened->table->damage(2999));
  EXPECT_THAT(opened->table->damage(1025)->error.what(), HasSubstr("record 1 is no valid"));
  EXPECT_THAT(opened->table->damage(1025)->error.what(), HasSubstr("over 1024 records"));
}

TEST(Tfrecord, SequenceExamplesGiveTheirListsAsSteps) {
  const auto opened = open_file("sequence_example.tfrecord");
  EXPECT_THAT(opened->names(), ElementsAre("frames", "len", "name", "tokens"));
  for (const std::string name : {"frames", "len", "name", "tokens"}) {
    EXPECT_EQ(opened->all_values(name), npy_data("expected/sequence/train/" + name + ".npy"));
  }
  EXPECT_EQ(opened->item("frames", 0).shape, (Shape{2, 3}));
  EXPECT_EQ(opened->item("frames", 1).shape, (Shape{0, 3}));
  EXPECT_EQ(opened->item("tokens", 0).shape, Shape{2});
  EXPECT_TRUE(opened->find("tokens")->time_series);
}

TEST(Tfrecord, UnevenStepsAreFlat) {
  const auto list = [](const std::string& steps) {
    return sub(2, sub(1, sub(1, "s") + sub(2, steps)));
  };
  const std::string even = sub(1, int_list("\x01\x02"));
  const auto opened =
      open_bytes(file_of({list(even + even), list(even + sub(1, int_list("\x03")))}));
  EXPECT_EQ(opened->item("s", 0).shape, Shape{4});
  EXPECT_EQ(opened->item("s", 1).shape, Shape{3});
  ASSERT_THAT(opened->warnings, SizeIs(1));
  EXPECT_THAT(opened->warnings[0], HasSubstr("'s' of record 1"));
}

TEST(Tfrecord, AStepsLastKindCountsHoweverLongTheFirst) {
  const std::string step = sub(2, sub(1, kOne + kOne + kOne + kOne)) + int_list("\x07");
  const auto opened = open_bytes(file_of({sub(2, sub(1, sub(1, "s") + sub(2, sub(1, step))))}));
  EXPECT_EQ(opened->item("s", 0).dtype.text(), "<i8");
  EXPECT_EQ(opened->values("s", 0)[0], std::byte{7});
}

TEST(Tfrecord, AFeatureOfTwoKindsIsShownAsBytes) {
  const auto opened = open_bytes(
      file_of({example(feature("f", float_list(kOne))), example(feature("f", int_list("\x05"))),
               example(feature("f", bytes_list("abc")))}));
  EXPECT_EQ(opened->item("f", 0).dtype.text(), "|u1");
  EXPECT_EQ(opened->item("f", 0).shape, Shape{4});
  EXPECT_EQ(opened->item("f", 1).shape, Shape{8});
  EXPECT_EQ(opened->values("f", 1)[0], std::byte{5});
  EXPECT_EQ(opened->values("f", 2).size(), 3U);
  ASSERT_THAT(opened->warnings, SizeIs(1));
  EXPECT_THAT(opened->warnings[0], HasSubstr("feature 'f' of record 1"));
}

TEST(Tfrecord, FeatureNamesAreGivenAsTheyAre) {
  const std::string value = int_list("\x01");
  const auto opened = open_bytes(
      file_of({example(feature("..", value) + feature("/abs", value) + feature("a/b", value))}));
  EXPECT_THAT(opened->names(), ElementsAre("..", "/abs", "a/b"));
}

TEST(Tfrecord, AnEmptyRecordIsAnExampleWithoutFeatures) {
  const auto opened = open_bytes(file_of({"", example(feature("a", int_list("\x01"))), ""}));
  EXPECT_FALSE(opened->item("a", 0).present);
  EXPECT_TRUE(opened->item("a", 1).present);
  EXPECT_FALSE(opened->item("a", 2).present);
}

// A flipped bit must not invent or lose a feature.
TEST(Tfrecord, DamageDoesNotSpeakForTheStructure) {
  const std::string payload = example(feature("label", int_list("\x01")));
  for (std::size_t bad_record = 0; bad_record < 3; ++bad_record) {
    for (std::size_t bit = 0; bit < payload.size() * 8; ++bit) {
      ByteVector file = file_of({payload, payload, payload});
      file[(payload.size() + 16) * bad_record + 12 + bit / 8] ^= std::byte{1} << (bit % 8);
      const auto opened = open_bytes(file);
      ASSERT_THAT(opened->names(), ElementsAre("label")) << bad_record << " bit " << bit;
      for (std::uint64_t record = 0; record < 3; ++record) {
        if (record != bad_record) {
          ASSERT_EQ(opened->item("label", record).shape, Shape{});
          ASSERT_EQ(opened->values("label", record)[0], std::byte{1});
        } else if (opened->table->damage(record) == nullptr) {
          ASSERT_THROW(opened->values("label", record), Error);
        }
      }
    }
  }
}

TEST(TfrecordBad, DataDamageIsLeftToTheChecksum) {
  for (const char* name : {"bad/payload_bitflip.tfrecord", "bad/payload_crc_bitflip.tfrecord"}) {
    const auto opened = open_file(name);
    EXPECT_EQ(opened->table->damaged_count(), 0U);
    for (std::uint64_t record = 0; record < 12; ++record) {
      const Guard guard = opened->table->stored()[0].bytes->guard(record);
      EXPECT_EQ(strict_verifier().is_intact(guard), record != 4) << name;
    }
  }
}

// As writers leave it that do not know the checksum.
ByteVector with_wrong_checksums(ByteVector file, std::size_t payload_nbytes) {
  for (std::size_t end = payload_nbytes + 16; end <= file.size(); end += payload_nbytes + 16) {
    file[end - 1] ^= std::byte{0xff};
  }
  return file;
}

// Memory that counts what is read of it.
class CountingSource : public ByteSource {
 public:
  explicit CountingSource(ByteVector bytes)
      : ByteSource("c.tfrecord", bytes.size(), 0), bytes_(std::move(bytes)) {}
  mutable std::uint64_t read_nbytes = 0;

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    read_nbytes += out.size();
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

  ByteVector bytes_;
};

TEST(TfrecordBad, WrongChecksumsThroughoutDoNotHideTheStructure) {
  const std::string payload = example(feature("label", int_list("\x01")));
  for (const std::size_t records : {16U, 40U}) {
    const auto opened = open_bytes(
        with_wrong_checksums(file_of(std::vector<std::string>(records, payload)), payload.size()));
    EXPECT_THAT(opened->names(), ElementsAre("label"));
    EXPECT_EQ(opened->table->damaged_count(), 0U);
    EXPECT_EQ(opened->find("label")->typed->uniform()->shape, Shape{});
    for (const std::uint64_t record : {std::uint64_t{0}, std::uint64_t{records - 1}}) {
      EXPECT_EQ(opened->table->damage(record), nullptr);
      EXPECT_THROW(opened->values("label", record), Error);
    }
    ASSERT_THAT(opened->warnings, SizeIs(1));
    EXPECT_THAT(opened->warnings[0],
                HasSubstr("m.tfrecord at byte 12: the data of the first 16 records does not"));
    EXPECT_THAT(opened->warnings[0], HasSubstr("--verify=never"));
  }
}

TEST(TfrecordBad, WrongChecksumsThroughoutDoNotCostTheWholeFile) {
  const std::string payload(100000, 'r');
  const auto source = std::make_shared<CountingSource>(
      with_wrong_checksums(file_of(std::vector<std::string>(200, payload)), payload.size()));
  const auto opened = open_source(source);
  EXPECT_THAT(opened->names(), ElementsAre("x"));
  EXPECT_EQ(opened->table->size(), 200U);
  EXPECT_LT(source->read_nbytes, 25 * payload.size());
  EXPECT_NE(opened->find("x")->bytes->guard(199).checksums, nullptr);
}

TEST(TfrecordBad, AFewWrongChecksumsAtTheBeginningAreDamage) {
  const std::string payload = example(feature("label", int_list("\x01")));
  ByteVector file =
      with_wrong_checksums(file_of(std::vector<std::string>(15, payload)), payload.size());
  const ByteVector good = framed(payload);
  file.insert(file.end(), good.begin(), good.end());
  const auto opened = open_bytes(file);
  EXPECT_THAT(opened->names(), ElementsAre("label"));
  EXPECT_EQ(opened->table->damaged_count(), 15U);
  EXPECT_EQ(opened->values("label", 15)[0], std::byte{1});
}

TEST(TfrecordBad, LostFramingRefusesAndPermissiveShowsWhatPrecedes) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"bad/length_crc_bitflip.tfrecord", 4},   {"bad/length_bitflip.tfrecord", 4},
      {"bad/length_huge.tfrecord", 4},          {"bad/length_wraps.tfrecord", 4},
      {"bad/length_wraps_to_loop.tfrecord", 4}, {"bad/trailing_zeros.tfrecord", 12}};
  for (const auto& [name, whole] : cases) {
    const std::string place = name + std::string(" at byte ") + std::to_string(88 * whole);
    EXPECT_THAT(refusal(name), HasSubstr(place));
    const auto opened = open_file(name, {.permissive = true});
    EXPECT_EQ(opened->table->size(), whole);
    ASSERT_THAT(opened->warnings, SizeIs(1));
    EXPECT_THAT(opened->warnings[0], HasSubstr(place));
  }
}

TEST(TfrecordBad, NoRecordAtAllIsRefusedEvenPermissively) {
  for (const char* name :
       {"bad/garbage.tfrecord", "bad/five_bytes.tfrecord", "bad/text_file.tfrecord",
        "bad/unmasked_crc.tfrecord", "bad/zlib_crc32.tfrecord"}) {
    EXPECT_THAT(refusal(name), HasSubstr(name + std::string(" at byte 0: ")));
    EXPECT_THAT(refusal(name, {.permissive = true}), HasSubstr(name));
  }
}

TEST(TfrecordBad, ACutLastRecordIsDamagedInItsRow) {
  for (const char* name :
       {"bad/truncated_mid_payload.tfrecord", "bad/truncated_before_footer.tfrecord",
        "bad/truncated_in_footer.tfrecord", "bad/truncated_after_header.tfrecord"}) {
    const auto opened = open_file(name);
    EXPECT_EQ(opened->table->size(), 12U) << name;
    ASSERT_EQ(opened->table->damaged_count(), 1U) << name;
    EXPECT_EQ(opened->table->damage(11)->nbytes, 72U);
    EXPECT_EQ(opened->find("x")->bytes->damage(11)->nbytes, 72U);
    EXPECT_EQ(opened->find("x")->bytes->damage(10), nullptr);
    EXPECT_THAT(opened->table->damage(11)->error.what(), HasSubstr(name));
    EXPECT_EQ(opened->find("x")->bytes->equal_nbytes(), std::nullopt);
  }
}

TEST(TfrecordBad, ACutHeaderIsLeftOutWithAWarning) {
  const auto opened = open_file("bad/truncated_in_header.tfrecord");
  EXPECT_EQ(opened->table->size(), 11U);
  EXPECT_EQ(opened->table->damaged_count(), 0U);
  ASSERT_THAT(opened->warnings, SizeIs(1));
  EXPECT_THAT(opened->warnings[0], HasSubstr("truncated_in_header.tfrecord at byte 968"));
}

TEST(TfrecordBad, ACutExampleIsDamagedWithoutASize) {
  ByteVector file = read_file(kData + "example_full.tfrecord");
  file.resize(file.size() - 7);
  const auto opened = open_bytes(file);
  ASSERT_EQ(opened->table->damaged_count(), 1U);
  EXPECT_EQ(opened->item("label", 9).damage->nbytes, std::nullopt);
  EXPECT_NE(opened->table->stored()[0].bytes->damage(9)->nbytes, std::nullopt);
  EXPECT_EQ(opened->item("label", 8).shape, Shape{});
}

TEST(TfrecordBad, ACutCompressedFileIsRefusedOrShownUpToTheCut) {
  ByteVector file = read_file(kData + "example_full_gzip.tfrecord.gz");
  file.resize(file.size() / 2);
  EXPECT_THROW(open_bytes(file), Error);
  const auto opened = open_bytes(file, {.permissive = true});
  EXPECT_GT(opened->table->size(), 2U);
  EXPECT_THAT(opened->warnings[0], HasSubstr("cut short"));
  const ByteVector labels = npy_data("expected/example/train/label.npy");
  EXPECT_EQ(opened->values("label", 1), ByteVector(labels.begin() + 8, labels.begin() + 16));
}

TEST(TfrecordBad, NestedGroupsAndManyNamesAreLimited) {
  const std::string good = example(feature("a", int_list("\x01")));
  std::string nested = good;
  nested.append(100000, '\x1b');  // group 3 begins
  EXPECT_EQ(open_bytes(file_of({good, nested}))->table->damaged_count(), 1U);
  nested = good + std::string(50, '\x1b') + std::string(50, '\x1c');
  EXPECT_EQ(open_bytes(file_of({good, nested}))->table->damaged_count(), 0U);

  std::vector<std::string> payloads;
  payloads.reserve(65537);
  for (int i = 0; i < 65537; ++i) {
    payloads.push_back(example(feature(std::to_string(i), int_list("\x01"))));
  }
  EXPECT_THROW(open_bytes(file_of(payloads), {.verifier = &trusting_verifier()}), Error);
}

// A length-delimited field of any size.
std::string long_sub(int field, const std::string& content) {
  std::string out{static_cast<char>(field << 3 | 2)};
  std::size_t left = content.size();
  for (; left >= 128; left >>= 7) {
    out += static_cast<char>(left | 128);
  }
  return out + static_cast<char>(left) + content;
}

std::string repeated(const std::string& text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

// An Example whose one feature "s" is `value`.
std::string long_example(const std::string& value) {
  return long_sub(1, long_sub(1, sub(1, "s") + value));
}

TEST(TfrecordBad, AFeatureOfTooManyPiecesIsItsRecordsDamage) {
  const std::string good = example(feature("s", bytes_list("one")));
  const auto strings = [](std::size_t count) {
    return long_example(long_sub(2, long_sub(1, repeated(sub(1, ""), count - 1) + sub(1, "end"))));
  };
  EXPECT_EQ(open_bytes(file_of({good, strings(65536)}))->table->damaged_count(), 0U);
  const auto opened = open_bytes(file_of({strings(65537), good, strings(65537), good}));
  EXPECT_THAT(opened->names(), ElementsAre("s"));
  EXPECT_EQ(opened->table->damaged_count(), 2U);
  for (const std::uint64_t record : {0, 2}) {
    ASSERT_NE(opened->table->damage(record), nullptr);
    EXPECT_EQ(opened->table->damage(record)->error.to_errno(), EIO);
    EXPECT_THAT(opened->table->damage(record)->error.what(),
                HasSubstr("strings or lists of a feature is 65537 and more, expected at most "
                          "65536; record " +
                          std::to_string(record)));
  }
  EXPECT_EQ(opened->values("s", 3).size(), 3U);
  // As raw bytes there is nothing wrong with it.
  EXPECT_EQ(open_bytes(file_of({strings(65537)}))->table->damaged_count(), 0U);

  // Lists of numbers, and pieces of a map entry, are no better.
  const std::string ints = example(feature("s", int_list("\x01")));
  for (const std::string& bad : {long_example(long_sub(2, repeated(sub(3, ""), 65537))),
                                 long_example(repeated(sub(2, ""), 65537))}) {
    EXPECT_EQ(open_bytes(file_of({ints, bad}))->table->damaged_count(), 1U);
  }
  // Steps are not: a read of a feature list does not look at each.
  const auto steps = open_bytes(file_of({long_sub(
      2, long_sub(1, sub(1, "s") + long_sub(2, repeated(sub(1, int_list("\x01")), 70000))))}));
  EXPECT_EQ(steps->item("s", 0).shape, Shape{70000});
}

TEST(TfrecordBad, LongNamesAreLimitedAllTogether) {
  const auto entry = [](int i) {
    std::string name = std::to_string(i);
    name.resize(65536, 'n');
    return long_sub(1, long_sub(1, name) + sub(2, int_list("\x01")));
  };
  std::vector<std::string> payloads;
  payloads.reserve(257);
  for (int i = 0; i < 257; ++i) {
    payloads.push_back(long_sub(1, entry(i)));
  }
  try {
    open_bytes(file_of(payloads));
    FAIL() << "16 MiB of names were taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTooLarge);
    EXPECT_THAT(error.what(), HasSubstr("257 feature names of 16842752 bytes in all and more, "
                                        "expected at most 65536 of 16777216 bytes"));
  }
  payloads.pop_back();
  EXPECT_THAT(open_bytes(file_of(payloads))->names(), SizeIs(256));
}

// Reads all that can be read; damage must come as Error.
void read_all(const Opened& opened) {
  for (std::uint64_t record = 0; record < opened.table->size(); ++record) {
    for (const Field& field : opened.table->fields()) {
      try {
        if (opened.table->damage(record) == nullptr) {
          opened.values(field.name, record);
        }
      } catch (const Error&) {
      }
    }
  }
}

TEST(TfrecordBad, MutationsNeverCrash) {
  std::mt19937 random(5);
  for (const char* name :
       {"example_full.tfrecord", "example_wire_variants.tfrecord", "sequence_example.tfrecord",
        "example_ragged.tfrecord", "example_full_gzip.tfrecord.gz"}) {
    const ByteVector good = read_file(kData + name);
    for (int round = 0; round < 400; ++round) {
      ByteVector bad = good;
      for (unsigned n = random() % 6 + 1; n > 0; --n) {
        bad[random() % bad.size()] = std::byte{static_cast<unsigned char>(random())};
      }
      const Options options{.permissive = true,
                            .verifier = round % 2 == 0 ? &strict_verifier() : &trusting_verifier()};
      try {
        read_all(*open_bytes(bad, options));
      } catch (const Error&) {
      }
    }
  }
}

// The framing is whole, the messages are not: the parser sees every mutation.
TEST(TfrecordBad, MutatedMessagesNeverCrash) {
  std::mt19937 random(6);
  std::vector<std::string> seeds;
  for (const char* name :
       {"example_wire_variants.tfrecord", "sequence_example.tfrecord", "example_ragged.tfrecord"}) {
    const auto opened = open_file(name, {.decode = {{"x", "raw"}}});
    for (std::uint64_t record = 0; record < opened->table->size(); ++record) {
      const ByteVector payload = opened->values("x", record);
      seeds.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
    }
  }
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> payloads{seeds[random() % seeds.size()]};
    for (int i = 0; i < 4; ++i) {
      std::string bad = seeds[random() % seeds.size()];
      for (unsigned n = random() % 3 + 1; n > 0 && !bad.empty(); --n) {
        bad[random() % bad.size()] =
            static_cast<char>(random() % 3 == 0 ? random() % 16 : random());
      }
      payloads.push_back(bad);
    }
    read_all(*open_bytes(file_of(payloads), {.permissive = true}));
  }
}

}  // namespace
}  // namespace npyfs
