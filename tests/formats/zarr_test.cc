// SPDX-License-Identifier: Apache-2.0
//
// zarr: the parts of the decoder, and stores whose files are missing, cut, changed or hostile. That
// real stores come out right is shown by tests/data/zarr.

#include "formats/zarr/zarr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "formats/arrays/chunked_array.h"
#include "formats/bytes/box.h"
#include "formats/bytes/regular_file.h"
#include "formats/bytes/value_access.h"
#include "formats/store.h"
#include "formats/zarr/chunk_keys.h"
#include "formats/zarr/element_type.h"
#include "formats/zarr/fill_value.h"
#include "formats/zarr/transpose.h"
#include "tests/cli/scratch_folder.h"
#include "tests/support/read_plan.h"
#include "tests/support/zip_writer.h"

namespace npyfs {
namespace {

using ::testing::AllOf;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::packed;
using testing::read_array;
using testing::text_of;
using testing::ZipWriter;

std::uint32_t test_seed() {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

// ---- parts

TEST(ChunkKeys, AreThoseOfTheSpecification) {
  const ChunkKeys v2{false, '.'};
  const ChunkKeys v2_nested{false, '/'};
  const ChunkKeys v3{true, '/'};
  const ChunkKeys v3_flat{true, '.'};
  EXPECT_EQ(v2.key(Shape{1, 0, 12}), "1.0.12");
  EXPECT_EQ(v2_nested.key(Shape{1, 0, 12}), "1/0/12");
  EXPECT_EQ(v3.key(Shape{1, 0, 12}), "c/1/0/12");
  EXPECT_EQ(v3_flat.key(Shape{1, 0, 12}), "c.1.0.12");
  EXPECT_EQ(v2.key(Shape{}), "0");
  EXPECT_EQ(v3.key(Shape{}), "c");
}

TEST(ChunkKeys, AreReadAsTheyAreWritten) {
  const Shape grid = {3, 4, 2};
  for (const ChunkKeys keys :
       {ChunkKeys{false, '.'}, ChunkKeys{false, '/'}, ChunkKeys{true, '/'}, ChunkKeys{true, '.'}}) {
    for (std::uint64_t number = 0; number < 24; ++number) {
      EXPECT_EQ(keys.number(keys.key(number, grid), grid), number);
    }
    EXPECT_EQ(keys.number(keys.key(0, {}), {}), 0U);
  }
  const ChunkKeys v2{false, '.'};
  for (const char* key : {"", "0", "0.0", "3.0.0", "0.4.0", "0.0.0.0", "00.0.0", "0.0.00", "+0.0.0",
                          "0/0/0", "c/0/0/0", ".zarray", "0.0.-1", "0.0.99999999999999999999"}) {
    EXPECT_FALSE(v2.number(key, grid).has_value()) << key;
  }
}

TEST(Transpose, EqualsThePlainestWay) {
  std::mt19937 random(test_seed());
  for (int round = 0; round < 200; ++round) {
    Shape shape(1 + random() % 4);
    std::vector<std::size_t> order(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      shape[axis] = 1 + random() % (shape.size() < 3 ? 80 : 6);
      order[axis] = axis;
    }
    std::shuffle(order.begin(), order.end(), random);
    const std::uint64_t itemsize = std::vector<std::uint64_t>{1, 2, 3, 4, 8, 16}[random() % 6];
    const Shape stored = transposed(shape, order);
    const std::uint64_t nbytes = *element_count(shape) * itemsize;
    std::vector<std::byte> in(nbytes);
    for (std::byte& byte : in) {
      byte = static_cast<std::byte>(random());
    }
    std::vector<std::byte> expected(nbytes);
    Shape place(shape.size());
    std::uint64_t to = 0;
    do {
      std::uint64_t from = 0;
      for (std::size_t axis = 0; axis < stored.size(); ++axis) {
        from = from * stored[axis] + place[order[axis]];
      }
      std::copy_n(in.begin() + from * itemsize, itemsize, expected.begin() + to * itemsize);
      ++to;
    } while (advance(place, shape));
    std::vector<std::byte> out(nbytes);
    const CodecPtr codec = make_transpose(shape, order, itemsize);
    ASSERT_EQ(codec->decode(in, out), nbytes);
    ASSERT_TRUE(out == expected) << shape_text(shape);
    ASSERT_EQ(codec->decode(in, std::span(out).first(nbytes - 1)), std::nullopt);
  }
}

std::string fill_of(const char* json, const char* type) {
  return text_of(read_fill_value(parse_json(json), DType::simple(type)));
}

TEST(FillValue, IsAnElement) {
  using namespace std::string_literals;
  EXPECT_EQ(fill_of("null", "<f4"), std::string(4, '\0'));
  EXPECT_EQ(fill_of("-3", "<i2"), "\xfd\xff");
  EXPECT_EQ(fill_of("-3", ">i4"), "\xff\xff\xff\xfd");
  EXPECT_EQ(fill_of("3.0", "<i2"), "\x03\0"s);
  EXPECT_EQ(fill_of("18446744073709551615", "<u8"), std::string(8, '\xff'));
  EXPECT_EQ(fill_of("\"NaN\"", "<f4"), "\0\0\xc0\x7f"s);
  EXPECT_EQ(fill_of("NaN", "<f4"), "\0\0\xc0\x7f"s);
  EXPECT_EQ(fill_of("\"-Infinity\"", "<f2"), "\0\xfc"s);
  EXPECT_EQ(fill_of("1.5", "<f2"), "\0\x3e"s);
  EXPECT_EQ(fill_of("6e-8", ">f2"), "\0\x01"s);
  EXPECT_EQ(fill_of("1e6", "<f2"), "\0\x7c"s);
  EXPECT_EQ(fill_of("1e400", "<f8"), "\0\0\0\0\0\0\xf0\x7f"s);
  EXPECT_EQ(fill_of("0.0", "<f16"), std::string(16, '\0'));
  EXPECT_EQ(fill_of("-0.0", ">f8"), "\x80\0\0\0\0\0\0\0"s);
  EXPECT_EQ(fill_of("\"0x7fc01234\"", "<f4"), "\x34\x12\xc0\x7f");
  EXPECT_EQ(fill_of("[1.0, \"NaN\"]", "<c8"), "\0\0\x80\x3f\0\0\xc0\x7f"s);
  EXPECT_EQ(fill_of("true", "|b1"), "\x01");
  EXPECT_EQ(fill_of("\"YWI=\"", "|S3"), "ab\0"s);
  EXPECT_EQ(fill_of("\"YWJj\"", "|V3"), "abc");
  EXPECT_EQ(fill_of("\"\"", "|S3"), "\0\0\0"s);
  EXPECT_EQ(fill_of("\"h\\u00e9\"", ">U2"), "\0\0\0h\0\0\0\xe9"s);
  EXPECT_EQ(fill_of("-9223372036854775808", "<M8[s]"), "\0\0\0\0\0\0\0\x80"s);
}

TEST(FillValue, MustFitTheType) {
  for (const auto& wrong : std::map<const char*, const char*>{{"256", "|u1"},
                                                              {"-1", "|u1"},
                                                              {"128", "|i1"},
                                                              {"1.5", "<i4"},
                                                              {"\"x\"", "<f4"},
                                                              {"1.5", "<f16"},
                                                              {"[1.5, 0]", "<c32"},
                                                              {"1e400", "<i8"},
                                                              {"\"0x7fc0\"", "<f4"},
                                                              {"[1]", "<c8"},
                                                              {"2", "|b1"},
                                                              {"\"abc\"", "<U2"},
                                                              {"\"YWI=\"", "|V3"},
                                                              {"\"YWJjZA==\"", "|S3"},
                                                              {"\"!\"", "|S3"},
                                                              {"{}", "<i8"}}) {
    EXPECT_THAT(error_of(ErrorKind::kUnsupported, [&] { fill_of(wrong.first, wrong.second); }),
                HasSubstr("fill_value is"));
  }
}

TEST(FillValue, TakesNoMemoryForElementsThatNobodyHas) {
  EXPECT_THAT(error_of(ErrorKind::kTooLarge, [&] { fill_of("null", "|V2000000000"); }),
              HasSubstr("an element has 2000000000 bytes, expected at most 16777216"));
}

TEST(ElementType, OfVersion2) {
  const auto descr = [](const char* json) {
    const Value value = parse_json(json);
    return read_type_v2(&value).dtype.descr;
  };
  EXPECT_EQ(descr("\">f8\""), "'>f8'");
  EXPECT_EQ(descr("\"<M8[25us]\""), "'<M8[25us]'");
  EXPECT_EQ(descr(R"([["a","<i4"],["b'c",">f8"],["d","|b1",[2,3]]])"),
            R"([('a', '<i4'), ("b'c", '>f8'), ('d', '|b1', (2, 3))])");
  EXPECT_EQ(descr(R"([["in",[["u","|u1"],["v","<u2"]]]])"),
            "[('in', [('u', '|u1'), ('v', '<u2')])]");
  for (const char* json : {"\"<q9\"", "7", "[]", "[[\"a\"]]", "[[\"a\",\"<q9\"]]", "\"<U0\"",
                           "null", R"([["a","<i4"],["a","<i4"]])", R"([["a","<i4",[-1]]])"}) {
    const Value value = parse_json(json);
    EXPECT_THROW(read_type_v2(&value), Error) << json;
  }
}

TEST(ElementType, OfVersion3) {
  const auto descr = [](const char* json) {
    const Value value = parse_json(json);
    return read_type_v3(&value).dtype.descr;
  };
  EXPECT_EQ(descr("\"complex128\""), "'<c16'");
  EXPECT_EQ(descr("\"r24\""), "'|V3'");
  EXPECT_EQ(descr(R"({"name":"numpy.timedelta64","configuration":{"unit":"s","scale_factor":10}})"),
            "'<m8[10s]'");
  EXPECT_EQ(descr(R"({"name":"fixed_length_utf32","configuration":{"length_bytes":20}})"), "'<U5'");
  EXPECT_EQ(
      descr(R"({"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int8"}]}})"),
      "[('a', '|i1')]");
  for (const char* json : {"\"float13\"", "\"r7\"", "\"bfloat16\"", "{}", "3",
                           R"({"name":"fixed_length_utf32","configuration":{"length_bytes":3}})",
                           R"({"name":"structured","configuration":{"fields":[]}})"}) {
    const Value value = parse_json(json);
    EXPECT_THROW(read_type_v3(&value), Error) << json;
  }
}

// ---- stores

// Keeps what it has decoded, and counts.
class Cache : public ChunkCache {
 public:
  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override {
    auto& block = blocks_[{&chunks, chunk}];
    if (block == nullptr) {
      ++decoded;
      block = std::make_shared<const Block>(testing::decode_chunk(chunks, chunk));
    }
    return block;
  }
  int decoded = 0;

 private:
  std::map<std::pair<const ChunkSource*, std::uint64_t>, std::shared_ptr<const Block>> blocks_;
};

class ZarrStore : public ::testing::Test {
 protected:
  StorePtr open(const std::string& path = "s.zarr") {
    warnings.clear();
    OpenContext context;
    context.cache = &cache;
    context.confine = confine;
    context.warn = [&](const std::string& text) { warnings.push_back(text); };
    Location location{path, std::filesystem::is_directory(path), nullptr};
    if (!location.is_directory) {
      location.source = FileSource::open(path, path);
    }
    return kZarr.open_store(location, context);
  }

  // `<i2` of `shape` in `chunks`, plain, fill value 7, but for what `members` says else.
  static std::string array_v2(const std::string& members) {
    return R"({"zarr_format":2,"dtype":"<i2","compressor":null,"filters":null,"order":"C",)"
           R"("fill_value":7,)" +
           members + "}";
  }
  void write_v2(const std::string& members, const std::string& name = "x") {
    folder.write("s.zarr/.zgroup", R"({"zarr_format":2})");
    folder.write("s.zarr/" + name + "/.zarray", array_v2(members));
  }

  StorePtr open_zip(const ZipWriter& zip) {
    folder.write("s.zip", zip.finish());
    return open("s.zip");
  }

  std::string read(const StorePtr& store, std::size_t number = 0) {
    return read_array(*array_of(store, number));
  }
  std::shared_ptr<const ChunkGrid> grid_of(const StorePtr& store, std::size_t number = 0) {
    return std::get<std::shared_ptr<const ChunkGrid>>(store->root.arrays.at(number).parts.at(0));
  }
  ArrayPtr array_of(const StorePtr& store, std::size_t number = 0) {
    return make_chunked_array(grid_of(store, number));
  }

  // A kChanged of reading the array's first chunks, now and from then on.
  void expect_changed(const StorePtr& store) {
    error_of(ErrorKind::kChanged, [&] { read_array(*array_of(store), {0, 8}); });
    EXPECT_TRUE(store->root.arrays[0].sources[0]->changed());
    error_of(ErrorKind::kChanged, [&] { store->root.arrays[0].sources[0]->check_unchanged(); });
  }

  ScratchFolder folder;
  Cache cache;
  bool confine = false;
  std::vector<std::string> warnings;
};

using Shorts = std::vector<std::int16_t>;

TEST_F(ZarrStore, ShowsChunksAndWhatWasNeverWritten) {
  write_v2(R"("shape":[5],"chunks":[2])");
  folder.write("s.zarr/x/0", packed(Shorts{1, 2}));
  folder.write("s.zarr/x/2", packed(Shorts{5, 99}));
  folder.write("s.zarr/x/3", "no chunk of the grid");
  folder.write("s.zarr/x/README", "nor this");
  const StorePtr store = open();
  EXPECT_EQ(read(store), packed(Shorts{1, 2, 7, 7, 5}));
  EXPECT_EQ(array_of(store)->storage(), "mapped");
  EXPECT_EQ(read_array(*array_of(store), {5, 9}), packed(Shorts{1, 2, 7, 7, 5}).substr(5, 4));
  EXPECT_THAT(warnings, ElementsAre());
}

TEST_F(ZarrStore, ACutChunkIsDamagedAndNeverFilled) {
  write_v2(R"("shape":[4],"chunks":[2])");
  folder.write("s.zarr/x/0", packed(Shorts{1, 2}));
  for (const std::string& chunk : {std::string(), std::string("abc"), std::string("abcde")}) {
    folder.write("s.zarr/x/1", chunk);
    const ArrayPtr array = array_of(open());
    EXPECT_EQ(read_array(*array, {0, 4}), packed(Shorts{1, 2}));
    EXPECT_THAT(error_of(ErrorKind::kCorrupt, [&] { read_array(*array); }),
                HasSubstr("s.zarr/x/1"));
  }
}

TEST_F(ZarrStore, AFolderInPlaceOfAChunkIsDamage) {
  write_v2(R"("shape":[4],"chunks":[2])");
  folder.write("s.zarr/x/1/inner", "");
  const StorePtr store = open();
  error_of(ErrorKind::kCorrupt, [&] { read(store); });
}

TEST_F(ZarrStore, IndicesInFoldersNeedNotBeAnnounced) {
  write_v2(R"("shape":[2,2],"chunks":[1,2])");
  folder.write("s.zarr/x/0/0", packed(Shorts{1, 2}));
  EXPECT_EQ(read(open()), packed(Shorts{1, 2, 7, 7}));
}

TEST_F(ZarrStore, AChunkThatIsWrittenLaterIsAChange) {
  // Of the second what its chunks were is not noted.
  for (const char* shape : {R"("shape":[4])", R"("shape":[140000])"}) {
    for (const char* filters : {"null", R"([{"id":"delta","dtype":"<i2"}])"}) {
      folder.write("s.zarr/x/.zarray",
                   R"({"zarr_format":2,"dtype":"<i2","compressor":null,"order":"C","fill_value":7,)"
                   R"("chunks":[2],"filters":)" +
                       std::string(filters) + "," + shape + "}");
      folder.write("s.zarr/.zgroup", R"({"zarr_format":2})");
      folder.write("s.zarr/x/0", packed(Shorts{1, 2}));
      StorePtr store = open();
      folder.write("s.zarr/x/0", packed(Shorts{3, 4}));  // overwritten
      expect_changed(store);
      store = open();
      for (const std::string& other : {packed(Shorts{3}), packed(Shorts{3, 4, 5})}) {
        folder.write("s.zarr/x/0", other);  // with another size
        expect_changed(store);
      }
      folder.write("s.zarr/x/0", packed(Shorts{3, 4}));
      store = open();
      folder.write("s.zarr/x/0", packed(Shorts{3, 5}));
      const auto old = std::filesystem::file_time_type(std::chrono::seconds(1000));
      std::filesystem::last_write_time("s.zarr/x/0", old);  // and dated back
      expect_changed(store);
      store = open();
      folder.write("new", packed(Shorts{5, 6}));
      std::filesystem::last_write_time("new", old);
      std::filesystem::rename("new", "s.zarr/x/0");  // replaced
      expect_changed(store);
      store = open();
      folder.write("s.zarr/x/1", packed(Shorts{5, 6}));  // added
      expect_changed(store);
      store = open();
      std::filesystem::remove("s.zarr/x/1");  // taken away
      expect_changed(store);
    }
  }
}

TEST_F(ZarrStore, AChunkThatIsOpenIsNoticedToChange) {
  const auto replace = [&] {
    folder.write("new", packed(Shorts{5, 6}));
    std::filesystem::rename("new", "s.zarr/x/0");
  };
  const auto overwrite = [&] { folder.write("s.zarr/x/0", packed(Shorts{3, 4})); };
  const auto remove = [&] { std::filesystem::remove("s.zarr/x/0"); };
  for (const std::function<void()>& change :
       {std::function<void()>(replace), std::function<void()>(overwrite),
        std::function<void()>(remove)}) {
    write_v2(R"("shape":[4],"chunks":[2])");
    folder.write("s.zarr/x/0", packed(Shorts{1, 2}));
    const StorePtr store = open();
    EXPECT_EQ(read_array(*array_of(store), {0, 4}), packed(Shorts{1, 2}));
    change();
    expect_changed(store);
  }
}

TEST_F(ZarrStore, KeepsFewOfItsFilesOpen) {
  write_v2(R"("shape":[400],"chunks":[2])");
  Shorts all;
  for (std::int16_t chunk = 0; chunk < 200; ++chunk) {
    folder.write("s.zarr/x/" + std::to_string(chunk), packed(Shorts{chunk, 9}));
    all.insert(all.end(), {chunk, 9});
  }
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const StorePtr store = open();
  const auto before = descriptors();
  EXPECT_EQ(read(store), packed(all));
  EXPECT_EQ(read(store), packed(all));
  EXPECT_LE(descriptors() - before, 32);
}

TEST_F(ZarrStore, WhatIsNoChangeOfTheBytesIsNone) {
  write_v2(R"("shape":[4],"chunks":[2])");
  folder.write("s.zarr/x/0", packed(Shorts{1, 2}));
  const StorePtr store = open();
  std::filesystem::permissions("s.zarr/x/0", std::filesystem::perms::owner_read);
  std::filesystem::create_hard_link("s.zarr/x/0", "s.zarr/x/0.copy");
  folder.write("s.zarr/x/README", "no chunk");
  EXPECT_EQ(read(store), packed(Shorts{1, 2, 7, 7}));
  store->root.arrays[0].sources[0]->check_unchanged();
}

TEST_F(ZarrStore, AnArrayIsAsNewAsItsNewestChunk) {
  write_v2(R"("shape":[4],"chunks":[2])");
  folder.write("s.zarr/x/1", packed(Shorts{1, 2}));
  std::filesystem::last_write_time(
      "s.zarr/x/1", std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(identity_of("s.zarr/x/1")->mtime_ns, open()->root.arrays[0].sources[0]->mtime_ns());
}

TEST_F(ZarrStore, ChangedMetadataIsAChange) {
  write_v2(R"("shape":[4],"chunks":[2])");
  const StorePtr store = open();
  EXPECT_EQ(read(store), packed(Shorts{7, 7, 7, 7}));
  write_v2(R"("shape":[40],"chunks":[2])");
  error_of(ErrorKind::kChanged, [&] { store->root.arrays[0].sources[0]->check_unchanged(); });
}

TEST_F(ZarrStore, TakesConsolidatedMetadataAlone) {
  folder.write("s.zarr/.zmetadata",
               R"({"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2},)"
               R"(".zattrs":{"a":1},"g/x/.zarray":{"zarr_format":2,"dtype":"|u1","shape":[2],)"
               R"("chunks":[2],"compressor":null,"filters":null,"order":"C","fill_value":5},)"
               R"("g/x/.zattrs":{"b":2},"../evil/.zarray":{},"/abs/.zarray":{}}})");
  const StorePtr store = open();
  ASSERT_EQ(store->root.groups.size(), 1U);
  ASSERT_EQ(store->root.groups[0].arrays.size(), 1U);
  EXPECT_EQ(store->root.groups[0].arrays[0].attributes.at(0).name, "b");
  EXPECT_EQ(store->root.attributes.at(0).name, "a");
  EXPECT_TRUE(store->root.arrays.empty());
}

TEST_F(ZarrStore, LeavesOutWhatItDoesNotUnderstand) {
  write_v2(R"("shape":[2],"chunks":[2])", "good");
  write_v2(R"("shape":[2],"chunks":[0])", "zero");
  write_v2(R"("shape":[2],"chunks":[2,2])", "rank");
  write_v2(R"("shape":[4611686018427387904],"chunks":[1])", "large");
  folder.write("s.zarr/codec/.zarray",
               R"({"zarr_format":2,"dtype":"<i2","compressor":{"id":"zfpy"},"filters":null,)"
               R"("order":"C","fill_value":0,"shape":[2],"chunks":[2]})");
  folder.write("s.zarr/giant/.zarray",
               R"({"zarr_format":2,"dtype":"<i2","compressor":{"id":"zlib"},"filters":null,)"
               R"("order":"F","fill_value":0,"shape":[2,2],"chunks":[4294967296,4294967296]})");
  const StorePtr store = open();
  ASSERT_EQ(store->root.arrays.size(), 1U);
  EXPECT_EQ(store->root.arrays[0].name, "good");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("codec 'zfpy' is not known; codec is left out"),
                                    HasSubstr("giant is left out"), HasSubstr("large is left out"),
                                    HasSubstr("rank is left out"), HasSubstr("zero is left out")));
}

TEST_F(ZarrStore, DamagedAttributesHideNothingElse) {
  write_v2(R"("shape":[2],"chunks":[2])");
  write_v2(R"("shape":[2],"chunks":[2])", "y");
  folder.write("s.zarr/x/.zattrs", R"({"a":)" + std::string(20'000, '[') + "}");
  folder.write("s.zarr/y/.zattrs", R"({"a":"\ud800","b":1e400,"c":3})");
  const StorePtr store = open();
  ASSERT_EQ(store->root.arrays.size(), 2U);
  EXPECT_TRUE(store->root.arrays[0].attributes.empty());
  EXPECT_EQ(store->root.arrays[1].attributes.size(), 3U);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("nested deeper than 512; the attributes are left")));
}

TEST_F(ZarrStore, AChunkThatClaimsMoreThanItsSizeIsDamaged) {
  using namespace std::string_literals;
  const std::map<std::string, std::string> bombs = {
      {"blosc", "\2\1\x33\4\xef\xff\xff\x7f\0\0\1\0\x14\0\0\0\0\0\0\0"s},
      {"zstd", "\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x0f\1\0\0"s},
      {"gzip", "\x1f\x8b\x08\0\0\0\0\0\0\3"s + testing::deflate_raw(std::string(16 << 20, '\0')) +
                   std::string(8, '\0')}};
  for (const auto& [id, bytes] : bombs) {
    folder.write("s.zarr/" + id + "/.zarray",
                 R"({"zarr_format":2,"dtype":"<i2","filters":null,"order":"C","fill_value":0,)"
                 R"("shape":[4],"chunks":[2],"compressor":{"id":")" +
                     id + "\"}}");
    folder.write("s.zarr/" + id + "/0", bytes);
  }
  folder.write("s.zarr/.zgroup", R"({"zarr_format":2})");
  const StorePtr store = open();
  ASSERT_EQ(store->root.arrays.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(error_of(ErrorKind::kCorrupt,
                         [&] {
                           read_array(*array_of(store, i), {0, 4});
                         }),
                HasSubstr(store->root.arrays[i].name + "/0: "));
    EXPECT_EQ(read_array(*array_of(store, i), {4, 8}), std::string(4, '\0'));
  }
}

TEST_F(ZarrStore, RefusesWhatIsNoStore) {
  folder.write("s.zarr/sub/other", "");
  EXPECT_THAT(error_of(ErrorKind::kUnsupported, [&] { open(); }), HasSubstr("s.zarr"));
  folder.write("s.zarr/zarr.json", "{");
  error_of(ErrorKind::kCorrupt, [&] { open(); });
}

TEST_F(ZarrStore, LinksThatGoRoundHaveAnEnd) {
  write_v2(R"("shape":[2],"chunks":[2])");
  std::filesystem::create_directories("s.zarr/g");
  std::filesystem::create_directory_symlink(folder.path() / "s.zarr", "s.zarr/g/back");
  std::filesystem::create_directory_symlink(folder.path() / "s.zarr/g", "s.zarr/g/self");
  EXPECT_EQ(open()->root.arrays.size(), 1U);
}

TEST_F(ZarrStore, LinksThatCrossInMoreWaysThanCanBeFollowedHaveAnEnd) {
  write_v2(R"("shape":[2],"chunks":[2])");
  constexpr int kFolders = 9;  // 986,409 ways through them
  for (int from = 0; from < kFolders; ++from) {
    const std::string group = "s.zarr/g" + std::to_string(from);
    folder.write(group + "/.zgroup", R"({"zarr_format":2})");
    for (int to = 0; to < kFolders; ++to) {
      std::filesystem::create_directory_symlink(folder.path() / ("s.zarr/g" + std::to_string(to)),
                                                group + "/l" + std::to_string(to));
    }
  }
  EXPECT_EQ(open()->root.groups.size(), static_cast<std::size_t>(kFolders));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("what further ones lead to is left out")));
}

TEST_F(ZarrStore, ALinkToItselfHidesOnlyWhatItStandsFor) {
  write_v2(R"("shape":[2],"chunks":[2])");
  write_v2(R"("shape":[2],"chunks":[2])", "y");
  std::filesystem::create_symlink("around", "s.zarr/around");
  std::filesystem::remove("s.zarr/y/.zarray");
  std::filesystem::create_symlink(".zarray", "s.zarr/y/.zarray");
  std::filesystem::create_symlink("0", "s.zarr/x/0");
  const StorePtr store = open();
  ASSERT_EQ(store->root.arrays.size(), 1U);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("y is left out")));
  error_of(ErrorKind::kIo, [&] { read(store); });
}

TEST_F(ZarrStore, AFolderThatCannotBeReadIsLeftOut) {
  write_v2(R"("shape":[2],"chunks":[2])");
  folder.write("s.zarr/secret/.zgroup", R"({"zarr_format":2})");
  folder.write("s.zarr/closed/x/.zgroup", R"({"zarr_format":2})");
  // Root may read everything: for this, be somebody else.
  constexpr uid_t kNobody = 65534;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions("s.zarr/secret", std::filesystem::perms(0311));
  std::filesystem::permissions("s.zarr/closed", std::filesystem::perms(0));
  const uid_t user = ::geteuid();
  ASSERT_EQ(user == 0 ? ::seteuid(kNobody) : 0, 0);
  StorePtr store;
  EXPECT_NO_THROW(store = open());
  ASSERT_EQ(user == 0 ? ::seteuid(user) : 0, 0);
  std::filesystem::permissions("s.zarr/secret", std::filesystem::perms(0755));
  std::filesystem::permissions("s.zarr/closed", std::filesystem::perms(0755));
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->root.arrays.size(), 1U);
  EXPECT_TRUE(store->root.groups.empty());
  EXPECT_THAT(
      warnings,
      ElementsAre("s.zarr/closed: cannot look into the folder: Permission denied; closed is "
                  "left out",
                  "s.zarr/secret: cannot list: Permission denied; secret is left out"));
}

TEST_F(ZarrStore, FoldersBehindLinksAreThoseOfAConfinedStoreOnlyWithinIt) {
  write_v2(R"("shape":[2],"chunks":[2])", "g/x");
  folder.write("outside/y/.zarray", array_v2(R"("shape":[2],"chunks":[2])"));
  std::filesystem::create_directory_symlink(folder.path() / "s.zarr/g", "s.zarr/inside");
  std::filesystem::create_directory_symlink(folder.path() / "outside", "s.zarr/outside");
  EXPECT_EQ(open()->root.groups.size(), 3U);
  confine = true;
  const StorePtr store = open();
  ASSERT_EQ(store->root.groups.size(), 2U);
  EXPECT_EQ(store->root.groups[1].name, "inside");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("outside is left out")));
}

TEST_F(ZarrStore, StoresBesideEachOtherInAnArchiveAreItsGroups) {
  ZipWriter zip;
  for (const std::string name : {"sets/a.zarr", "sets/b.zarr"}) {
    zip.add(name + "/.zgroup", R"({"zarr_format":2})");
    zip.add(name + "/x/.zarray", array_v2(R"("shape":[2],"chunks":[2])"));
  }
  zip.add("sets/README", "");
  const StorePtr store = open_zip(zip);
  ASSERT_EQ(store->root.groups.size(), 2U);
  EXPECT_EQ(store->root.groups[0].name, "a.zarr");
  EXPECT_EQ(store->root.groups[1].name, "b.zarr");
  EXPECT_EQ(store->root.groups[1].arrays.size(), 1U);
}

TEST_F(ZarrStore, ArraysOfAnArchiveWhoseRootSaysNothingAreAllShown) {
  ZipWriter zip;
  zip.add("s.zarr/x/.zarray", array_v2(R"("shape":[2],"chunks":[2])"));
  zip.add("s.zarr/xy/.zarray", array_v2(R"("shape":[2],"chunks":[2])"));
  const StorePtr store = open_zip(zip);
  ASSERT_EQ(store->root.arrays.size(), 2U);
  EXPECT_EQ(store->root.arrays[1].name, "xy");
}

TEST_F(ZarrStore, LinksOutOfAConfinedStoreAreNotFollowed) {
  write_v2(R"("shape":[4],"chunks":[2])");
  write_v2(R"("shape":[4],"chunks":[2])", "y");
  folder.write("s.zarr/x/0", packed(Shorts{1, 2}));
  folder.write("outside/1", packed(Shorts{3, 4}));
  std::filesystem::create_symlink(folder.path() / "outside/1", "s.zarr/x/1");
  std::filesystem::rename("s.zarr/y/.zarray", "outside/.zarray");
  std::filesystem::create_symlink(folder.path() / "outside/.zarray", "s.zarr/y/.zarray");
  EXPECT_EQ(read(open()), packed(Shorts{1, 2, 3, 4}));
  confine = true;
  const StorePtr store = open();
  ASSERT_EQ(store->root.arrays.size(), 1U);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("y is left out")));
  EXPECT_EQ(read_array(*array_of(store), {0, 4}), packed(Shorts{1, 2}));
  error_of(ErrorKind::kCorrupt, [&] { read(store); });
}

TEST_F(ZarrStore, ReadsTheIndexOfAShardOnce) {
  const std::string data = std::string(NPYFS_TEST_DATA) + "/zarr/v3_sharded.zarr";
  const StorePtr store = open(data);
  const auto found =
      std::find_if(store->root.arrays.begin(), store->root.arrays.end(),
                   [](const StoredArray& array) { return array.name == "many_inner"; });
  ASSERT_NE(found, store->root.arrays.end());
  cache.decoded = 0;
  const auto grid = std::get<std::shared_ptr<const ChunkGrid>>(found->parts[0]);
  EXPECT_EQ(grid->chunk_count(), 500U);
  EXPECT_EQ(read_array(*make_chunked_array(grid)).size(), 4000U);
  EXPECT_EQ(cache.decoded, 1);
}

TEST_F(ZarrStore, MapsTheMembersOfAnArchiveWhereTheyLie) {
  const StorePtr store = open(std::string(NPYFS_TEST_DATA) + "/zarr/v2_zip_stored.zip");
  std::size_t mapped = 0;
  const std::function<void(const Group&)> count = [&](const Group& group) {
    for (const StoredArray& array : group.arrays) {
      const auto& grid = std::get<std::shared_ptr<const ChunkGrid>>(array.parts.at(0));
      const ChunkPlace place = grid->locate(0);
      if (grid->storage() == "mapped" && place.kind == ChunkPlace::Kind::kMapped) {
        EXPECT_THAT(place.extent.source->name(), HasSubstr(".zip"));
        EXPECT_NE(place.guard.checksums, nullptr);
        ++mapped;
      }
    }
    for (const Group& inner : group.groups) {
      count(inner);
    }
  };
  count(store->root);
  EXPECT_GT(mapped, 0U);
}

// What deflate cannot make smaller.
std::string noise(std::size_t nbytes) {
  std::mt19937 random(1);
  std::string bytes(nbytes, '\0');
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

ZipWriter::Options deflated() {
  ZipWriter::Options options;
  options.method = 8;
  return options;
}

TEST_F(ZarrStore, DeflatedPlainChunksAreDecodedOnceForAll) {
  ZipWriter zip;
  zip.add("x/.zarray", array_v2(R"("shape":[7],"chunks":[2])"), deflated());
  zip.add("x/0", packed(Shorts{1, 2}), deflated());
  zip.add("x/1", packed(Shorts{3, 4}));
  zip.add("x/3", packed(Shorts{5, 99}), deflated());
  const StorePtr store = open_zip(zip);
  const auto grid = grid_of(store);
  EXPECT_EQ(grid->storage(),
            "mapped, 2 of 3 chunks of 2 deflated, a read inflates whole ones (4 bytes)");
  EXPECT_EQ(read(store), packed(Shorts{1, 2, 3, 4, 7, 7, 5}));
  EXPECT_EQ(grid->locate(0).kind, ChunkPlace::Kind::kDecoded);
  EXPECT_EQ(grid->locate(1).kind, ChunkPlace::Kind::kMapped);
  EXPECT_NE(grid->locate(1).guard.checksums, nullptr);
  EXPECT_EQ(grid->locate(2).kind, ChunkPlace::Kind::kAbsent);
  cache.decoded = 0;
  for (int reader = 0; reader < 8; ++reader) {
    EXPECT_EQ(text_of(cache.get(*grid, 3)->bytes), packed(Shorts{5, 99}));
  }
  EXPECT_EQ(cache.decoded, 1);
}

TEST_F(ZarrStore, AMemberOfAnotherSizeIsDamagedAndTheOthersStayVerified) {
  for (const auto& options : {ZipWriter::Options(), deflated()}) {
    ZipWriter zip;
    zip.add("x/.zarray", array_v2(R"("shape":[6],"chunks":[2])"));
    zip.add("x/0", packed(Shorts{1, 2}));
    zip.add("x/1", "odd", options);
    zip.add("x/2", packed(Shorts{5, 6}));
    StorePtr store = open_zip(zip);
    EXPECT_EQ(read_array(*array_of(store), {0, 4}), packed(Shorts{1, 2}));
    EXPECT_EQ(read_array(*array_of(store), {8, 12}), packed(Shorts{5, 6}));
    EXPECT_THAT(error_of(ErrorKind::kCorrupt,
                         [&] {
                           read_array(*array_of(store), {4, 5});
                         }),
                HasSubstr("s.zip/x/1: the chunk has 3 bytes, expected 4"));
    zip.archive[zip.archive.find(packed(Shorts{5, 6}))] ^= 1;
    store = open_zip(zip);
    EXPECT_EQ(read_array(*array_of(store), {0, 4}), packed(Shorts{1, 2}));
    EXPECT_THAT(error_of(ErrorKind::kCorrupt,
                         [&] {
                           read_array(*array_of(store), {8, 12});
                         }),
                HasSubstr("x/2"));
  }
}

TEST_F(ZarrStore, AMemberWithADamagedHeaderIsDamagedAlone) {
  ZipWriter zip;
  zip.add("x/.zarray", array_v2(R"("shape":[4],"chunks":[2])"));
  zip.add("x/0", packed(Shorts{1, 2}));
  const std::size_t header = zip.archive.size();
  zip.add("x/1", packed(Shorts{3, 4}));
  zip.archive[header] = 'Q';
  const StorePtr store = open_zip(zip);
  EXPECT_EQ(read_array(*array_of(store), {0, 4}), packed(Shorts{1, 2}));
  error_of(ErrorKind::kCorrupt, [&] { read_array(*array_of(store), {4, 5}); });
}

// As a flipped bit does.
void rename_in_directory(ZipWriter& zip, const std::string& name, const std::string& other) {
  zip.directory.replace(zip.directory.rfind(name), name.size(), other);
}

TEST_F(ZarrStore, ChunksOfOtherNamesInTheDirectoryAreToldOf) {
  ZipWriter zip;
  zip.add("x/.zarray", array_v2(R"("shape":[8],"chunks":[2])"));
  for (const char* name : {"x/0", "x/1", "x/2", "x/3", "x/1"}) {
    zip.add(name, packed(Shorts{1, 2}));
  }
  ZipWriter renamed = zip;
  rename_in_directory(renamed, "x/2", "x/6");
  StorePtr store = open_zip(renamed);
  EXPECT_EQ(read(store), packed(Shorts{1, 2, 1, 2, 7, 7, 1, 2}));
  EXPECT_THAT(warnings, ElementsAre(AllOf(
                            HasSubstr("s.zip at byte "),
                            HasSubstr(": the name of 'x/6' in its own header is 'x/2', expected"),
                            HasSubstr("; 1 member that no array has is so, and what is missing for "
                                      "that seems never to have been written"))));
  rename_in_directory(renamed, "x/3", "x?3");
  rename_in_directory(renamed, "x/0", "x/p");
  open_zip(renamed);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("; 1 member outside of the store is so"),
                                    HasSubstr("; 2 members that no array has are so")));
  // Metadata, and a folder.
  renamed = zip;
  renamed.add("g/.zgroup", R"({"zarr_format":2})");
  rename_in_directory(renamed, "x/.zarray", "x/.zqrray");
  open_zip(renamed);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the name of 'x/.zqrray' in its own header is")));
  renamed = zip;
  rename_in_directory(renamed, "x/2", "y/2");
  open_zip(renamed);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the name of 'y/2' in its own header is 'x/2'")));

  // To what is there already: whichever is the last is the chunk.
  renamed = zip;
  rename_in_directory(renamed, "x/0", "x/2");
  store = open_zip(renamed);
  EXPECT_EQ(read(store), packed(Shorts{7, 7, 1, 2, 1, 2, 1, 2}));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("; 1 member with the name of another one is so")));
  renamed = zip;
  rename_in_directory(renamed, "x/3", "x/2");
  store = open_zip(renamed);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("; 1 member with the name of another one is so")));
  EXPECT_EQ(read_array(*array_of(store), {0, 8}), packed(Shorts{1, 2, 1, 2}));
  EXPECT_THAT(error_of(ErrorKind::kCorrupt,
                       [&] {
                         read_array(*array_of(store), {8, 9});
                       }),
              HasSubstr("the name of 'x/2' in its own header is 'x/3'"));
}

TEST_F(ZarrStore, ADamagedGroupHidesNoneOfItsArrays) {
  folder.write("s.zarr/.zgroup", R"({"zarr_format":2})");
  folder.write("s.zarr/g/.zgroup", R"({"zarr_form)");
  folder.write("s.zarr/g/x/.zarray", array_v2(R"("shape":[2],"chunks":[2])"));
  folder.write("s.zarr/g/x/0", packed(Shorts{1, 2}));
  const StorePtr store = open();
  ASSERT_EQ(store->root.groups.size(), 1U);
  EXPECT_EQ(store->root.groups[0].arrays.size(), 1U);
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("s.zarr/g/.zgroup"),
                                          HasSubstr("it is taken for a group all the same"))));
}

// zarr-python leaves the chunks of an array in an archive that was made smaller.
TEST_F(ZarrStore, ChunksOutsideOfTheGridAreNothingToTellOf) {
  ZipWriter zip;
  zip.add("x/.zarray", array_v2(R"("shape":[40],"chunks":[2])"));
  for (const char* name : {"x/0", "x/1", "x/2", "x/3", "x/README", "x/0"}) {
    zip.add(name, packed(Shorts{1, 2}));
  }
  zip.add("x/.zarray", array_v2(R"("shape":[4],"chunks":[2])"));
  EXPECT_EQ(read(open_zip(zip)), packed(Shorts{1, 2, 1, 2}));
  EXPECT_THAT(warnings, ElementsAre());
}

TEST_F(ZarrStore, DeflatedChunksThatAreTooLargeToDecodeAreRefused) {
  ZipWriter zip;
  zip.add(".zgroup", R"({"zarr_format":2})");
  zip.add("x/.zarray", array_v2(R"("shape":[2],"chunks":[1610612736])"));
  ZipWriter::Options options = deflated();
  options.claimed_nbytes = std::string("\0\0\0\xc0", 4);  // 3 GiB, from 4 MiB
  zip.add("x/0", noise(4 << 20), options);
  const StorePtr store = open_zip(zip);
  EXPECT_TRUE(store->root.arrays.empty());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("chunks of 3221225472 bytes are deflated")));
}

// 8 <i2 in one shard of 4 inner chunks, and its value.
std::string sharded_array() {
  return R"({"zarr_format":3,"node_type":"array","shape":[8],"data_type":"int16",)"
         R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[8]}},"fill_value":7,)"
         R"("chunk_key_encoding":{"name":"default"},"codecs":[{"name":"sharding_indexed",)"
         R"("configuration":{"chunk_shape":[2],"codecs":[{"name":"bytes",)"
         R"("configuration":{"endian":"little"}}],"index_codecs":[{"name":"bytes",)"
         R"("configuration":{"endian":"little"}}]}}]})";
}
std::string shard() {
  return packed(Shorts{1, 2, 3, 4, 5, 6, 7, 8}) +
         packed(std::vector<std::uint64_t>{0, 4, 4, 4, 8, 4, 12, 4});
}

TEST_F(ZarrStore, DeflatedShardsAreInflatedOnce) {
  ZipWriter zip;
  zip.add("zarr.json", sharded_array());
  zip.add("c/0", shard(), deflated());
  const StorePtr store = open_zip(zip);
  const auto grid = grid_of(store);
  EXPECT_EQ(grid->storage(),
            "plain chunks of 2 in deflated shards, a read inflates a whole one (80 bytes)");
  EXPECT_EQ(read(store), packed(Shorts{1, 2, 3, 4, 5, 6, 7, 8}));
  // The shard and its index; inner chunks go past this cache.
  EXPECT_EQ(cache.decoded, 2);
  read(store);
  EXPECT_EQ(cache.decoded, 2);
}

TEST_F(ZarrStore, ShardsAreVerifiedByTheChecksumOfTheArchive) {
  ZipWriter zip;
  zip.add("zarr.json", sharded_array());
  zip.add("c/0", shard());
  EXPECT_EQ(read(open_zip(zip)), packed(Shorts{1, 2, 3, 4, 5, 6, 7, 8}));
  zip.archive[zip.archive.find(shard())] ^= 1;
  const StorePtr store = open_zip(zip);
  EXPECT_THAT(error_of(ErrorKind::kCorrupt,
                       [&] {
                         read_array(*array_of(store), {12, 16});
                       }),
              HasSubstr("c/0"));
}

TEST_F(ZarrStore, LengthsOfTextsAreVerifiedByTheChecksumOfTheArchive) {
  using namespace std::string_literals;
  std::string metadata = sharded_array();
  const auto replace = [&](std::string_view what, std::string_view by) {
    metadata.replace(metadata.find(what), what.size(), by);
  };
  replace(R"("data_type":"int16")", R"("data_type":"string")");
  replace(R"("fill_value":7)", R"("fill_value":"")");
  replace(R"({"name":"bytes","configuration":{"endian":"little"}})", R"({"name":"vlen-utf8"})");
  replace(R"("shape":[8])", R"("shape":[2])");
  replace(R"("chunk_shape":[8])", R"("chunk_shape":[2])");
  const std::string chunk = "\2\0\0\0\1\0\0\0a\2\0\0\0bc"s;
  ZipWriter zip;
  zip.add("zarr.json", metadata);
  zip.add("c/0", chunk + packed(std::vector<std::uint64_t>{0, chunk.size()}));
  const StorePtr store = open_zip(zip);
  EXPECT_THAT(warnings, ElementsAre());
  EXPECT_EQ(array_of(store)->dtype().descr, "'<U2'");
  // A character that remains one: nothing but the checksum tells.
  zip.archive[zip.archive.find(chunk) + 8] ^= 1;
  open_zip(zip);
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("s.zip at byte "), HasSubstr("(key c/0)"),
                                HasSubstr("; 1 of the array's 1 chunks cannot be read"))));
}

TEST_F(ZarrStore, TextsOfDamagedChunksAreDamagedAlone) {
  folder.write("s.zarr/x/.zarray",
               R"({"zarr_format":2,"dtype":"|O","compressor":null,"order":"C","fill_value":"none",)"
               R"("shape":[5],"chunks":[2],"filters":[{"id":"vlen-utf8"}]})");
  using namespace std::string_literals;
  folder.write("s.zarr/.zgroup", R"({"zarr_format":2})");
  folder.write("s.zarr/x/0", "\2\0\0\0\1\0\0\0a\2\0\0\0bc"s);
  folder.write("s.zarr/x/1", "\2\0\0\0\1\0\0\0a\xff\0\0\0bc"s);
  const StorePtr store = open();
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("s.zarr/x/1: "), HasSubstr("item 1 has 255 bytes"),
                                HasSubstr("; 1 of the array's 3 chunks cannot be read"))));
  const ArrayPtr array = array_of(store);
  EXPECT_EQ(array->dtype().descr, "'<U4'");
  const auto text = [](std::u32string text) {
    text.resize(4);
    return std::string(reinterpret_cast<const char*>(text.data()), 16);
  };
  EXPECT_EQ(read_array(*array, {0, 32}), text(U"a") + text(U"bc"));
  EXPECT_EQ(read_array(*array, {64, 80}), text(U"none"));
  EXPECT_THAT(error_of(ErrorKind::kCorrupt,
                       [&] {
                         read_array(*array, {32, 33});
                       }),
              HasSubstr("s.zarr/x/1"));
}

TEST_F(ZarrStore, BytesOfManyAxesAreInCOrder) {
  using namespace std::string_literals;
  folder.write("s.zarr/.zgroup", R"({"zarr_format":2})");
  folder.write("s.zarr/x/.zarray",
               R"({"zarr_format":2,"dtype":"|O","compressor":null,"order":"F","fill_value":0,)"
               R"("shape":[2,3],"chunks":[2,2],"filters":[{"id":"vlen-bytes"}]})");
  const auto list = [](const std::vector<std::string>& items) {
    std::string bytes =
        packed(std::vector<std::uint32_t>{static_cast<std::uint32_t>(items.size())});
    for (const std::string& item : items) {
      bytes += packed(std::vector<std::uint32_t>{static_cast<std::uint32_t>(item.size())}) + item;
    }
    return bytes;
  };
  folder.write("s.zarr/x/0.0", list({"a", "dd", "bbb", ""}));  // by columns
  folder.write("s.zarr/x/0.1", list({"cc", "ff", "over", "hangs"}));
  const StorePtr store = open();
  EXPECT_EQ(read(store), "abbbccddff");
  EXPECT_EQ(read(store, 1), packed(std::vector<std::int64_t>{0, 1, 4, 6, 8, 8, 10}));
  EXPECT_EQ(store->root.arrays[1].name, "x_offsets");
}

}  // namespace
}  // namespace npyfs
