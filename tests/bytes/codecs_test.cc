// SPDX-License-Identifier: Apache-2.0
//
// Codecs against what numcodecs wrote (tests/data/codecs), whole and damaged.

#include "formats/bytes/codecs/codecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "formats/bytes/codecs/codec_chain.h"
#include "formats/bytes/codecs/codec_table.h"
#include "formats/bytes/codecs/numbers.h"
#include "formats/bytes/value_access.h"
#include "tests/support/fake_table.h"
#include "tests/support/zip_writer.h"

namespace npyfs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::refusal_of;
using Bytes = std::vector<std::byte>;

// What make_codec takes, or of HDF5 {"id": "hdf5", "filter", "values"}.
struct Case {
  Dict configuration;
  Bytes encoded;
  Bytes decoded;
};

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  for (const char* name : {"cases.json", "checksums.json", "hdf5.json"}) {
    std::ifstream file(std::string(NPYFS_TEST_DATA) + "/codecs/" + name);
    std::stringstream text;
    text << file.rdbuf();
    const Value root = parse_json(text.str());
    for (const Value& value : *as_list(&root)) {
      const Dict& entry = *as_dict(&value);
      const Dict* codec = as_dict(find_value(entry, "codec"));
      Dict configuration = codec == nullptr ? entry : *codec;
      if (codec == nullptr) {
        set_value(configuration, "id", {std::string("hdf5")});
      }
      cases.push_back({std::move(configuration), from_hex(*as_text(find_value(entry, "encoded"))),
                       from_hex(*as_text(find_value(entry, "decoded")))});
    }
  }
  return cases;
}

CodecPtr hdf5_codec(const Dict& entry) {
  std::vector<std::uint32_t> values;
  for (const Value& value : *as_list(find_value(entry, "values"))) {
    values.push_back(static_cast<std::uint32_t>(*as_uint64(&value)));
  }
  switch (*as_uint64(find_value(entry, "filter"))) {
    case 2:
      return make_shuffle(values.at(0));
    case 3:
      return make_fletcher32();
    case 4:
      return make_szip({values.at(0), values.at(1), values.at(2), values.at(3)});
    case 32008:
      return make_bitshuffle(values.at(2), values.at(3),
                             static_cast<BitshuffleInner>(values.at(4)));
    default:
      return make_lzf();
  }
}

CodecPtr codec_of(const Case& one) {
  const std::string& id = *as_text(find_value(one.configuration, "id"));
  return id == "hdf5" ? hdf5_codec(one.configuration) : make_codec(id, one.configuration);
}

CodecChain chain_of(const Case& one) {
  CodecChain chain;
  chain.add(codec_of(one));
  return chain;
}

// Exactly as long as `bytes`, so that a sanitizer sees what reads behind them.
Bytes exact(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

class Codecs : public ::testing::TestWithParam<Case> {};

TEST_P(Codecs, DecodeWhatNumcodecsWrote) {
  const Case& one = GetParam();
  Bytes out(one.decoded.size());
  chain_of(one).decode(one.encoded, out);
  EXPECT_TRUE(out == one.decoded);
  const Buffer any = chain_of(one).decode_any(one.encoded, 1 << 20);
  EXPECT_TRUE(exact(any.bytes()) == one.decoded);
}

TEST_P(Codecs, KnowTheirEncodedSize) {
  const Case& one = GetParam();
  const auto nbytes = codec_of(one)->encoded_nbytes(one.decoded.size());
  EXPECT_EQ(nbytes.value_or(one.encoded.size()), one.encoded.size());
  EXPECT_GE(chain_of(one).most_stored_nbytes(one.decoded.size()), one.encoded.size());
}

TEST_P(Codecs, NeedAllTheRoom) {
  const Case& one = GetParam();
  const CodecPtr codec = codec_of(one);
  for (const std::size_t room : {std::size_t{0}, one.decoded.size() / 2, one.decoded.size() - 1}) {
    Bytes out(room);
    EXPECT_FALSE(codec->decode(one.encoded, out).has_value()) << room;
    const auto refusal = refusal_of([&] { chain_of(one).decode(one.encoded, out); });
    EXPECT_EQ(refusal.kind, ErrorKind::kCorrupt);
    EXPECT_THAT(refusal.text, HasSubstr("expected " + std::to_string(room)));
  }
  Bytes out(one.decoded.size() + 1);
  EXPECT_EQ(codec->decode(one.encoded, out), one.decoded.size());
}

TEST_P(Codecs, RefuseEveryTruncation) {
  const Case& one = GetParam();
  const CodecChain chain = chain_of(one);
  if (codec_of(one)->name() == "szip") {
    GTEST_SKIP() << "libaec does not notice every cut";
  }
  for (std::size_t n = 0; n < one.encoded.size(); ++n) {
    const Bytes cut = exact(std::span(one.encoded).first(n));
    Bytes out(one.decoded.size());
    EXPECT_EQ(refusal_of([&] { chain.decode(cut, out); }).kind, ErrorKind::kCorrupt) << n;
  }
}

TEST_P(Codecs, SurviveEveryFlippedByte) {
  const Case& one = GetParam();
  const CodecChain chain = chain_of(one);
  for (std::size_t i = 0; i < one.encoded.size(); ++i) {
    for (const unsigned mask : {0x01U, 0x80U, 0xffU}) {
      Bytes damaged = one.encoded;
      damaged[i] ^= static_cast<std::byte>(mask);
      Bytes out(one.decoded.size());
      try {
        chain.decode(damaged, out);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
      }
    }
  }
}

TEST_P(Codecs, SurviveNoise) {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                     : std::random_device()();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const Case& one = GetParam();
  const CodecChain chain = chain_of(one);
  for (int i = 0; i < 300; ++i) {
    Bytes damaged = one.encoded;
    for (std::size_t at = random() % damaged.size(), n = 1 + random() % 40;
         n > 0 && at < damaged.size(); --n, ++at) {
      damaged[at] = static_cast<std::byte>(random());
    }
    Bytes out(one.decoded.size());
    try {
      chain.decode(damaged, out);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Numcodecs, Codecs, ::testing::ValuesIn(read_cases()),
                         [](const ::testing::TestParamInfo<Case>& info) {
                           return std::to_string(info.index) + "_" +
                                  *as_text(find_value(info.param.configuration, "id"));
                         });

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(CodecChain, DecodesBackwards) {
  CodecChain chain;
  chain.add(make_delta(DType::simple("u1"), DType::simple("u1")));
  chain.add(make_base64());
  EXPECT_EQ(chain.text(), "delta, base64");
  Bytes out(3);
  chain.decode(bytes_of("AQEB"), out);  // 1 1 1
  EXPECT_EQ(out, from_hex("010203"));
  EXPECT_EQ(chain.most_stored_nbytes(3), 4U);
}

TEST(CodecChain, LeavesOutSkippedCodecs) {
  CodecChain chain;
  chain.add(make_delta(DType::simple("u1"), DType::simple("u1")));
  chain.add(make_base64());
  Bytes out(3);
  chain.decode(bytes_of("AQEB"), out, 1);
  EXPECT_EQ(out, from_hex("010101"));
  chain.decode(from_hex("010101"), out, 2);
  EXPECT_EQ(out, from_hex("010203"));
  chain.decode(from_hex("040506"), out, 3);
  EXPECT_EQ(out, from_hex("040506"));
}

TEST(CodecChain, WithoutCodecsIsTheBytesThemselves) {
  const CodecChain chain;
  Bytes out(2);
  chain.decode(bytes_of("ab"), out);
  EXPECT_EQ(out, from_hex("6162"));
  EXPECT_EQ(refusal_of([&] { chain.decode(bytes_of("abc"), out); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(exact(chain.decode_any(bytes_of("abc"), 3).bytes()), from_hex("616263"));
  EXPECT_EQ(refusal_of([&] { chain.decode_any(bytes_of("abcd"), 3); }).kind, ErrorKind::kCorrupt);
}

// What does not fit is refused: by what is claimed where that says so, else once it has grown to
// what the chunk may be.
void expect_too_large(CodecPtr codec, const Bytes& encoded, const std::string& found) {
  CodecChain chain;
  chain.add(std::move(codec));
  Bytes out(10);
  EXPECT_THAT(refusal_of([&] { chain.decode(encoded, out); }).text,
              HasSubstr("decoded size is " + found));
  EXPECT_EQ(refusal_of([&] { chain.decode_any(encoded, 1000); }).kind, ErrorKind::kCorrupt);
}

TEST(CodecChain, BelievesNoClaim) {
  expect_too_large(make_lz4(), from_hex("ffffffff00"), "4294967295, expected 10;");
  expect_too_large(make_blosc(), from_hex("02013304efffff7f000001001400000000000000"),
                   "2147483631, expected 10;");
  expect_too_large(make_zstd(), from_hex("28b52ffde0ffffffffffffff0f010000"),
                   "1152921504606846975, expected 10;");
}

TEST(CodecChain, StopsWhereAChunkIsFull) {
  const std::string stream = testing::deflate_raw(std::string(64 << 20, '\0'));
  ASSERT_LT(stream.size(), 100'000U);
  Bytes gzip = from_hex("1f8b0800000000000003");
  const auto packed = bytes_of(stream);
  gzip.insert(gzip.end(), packed.begin(), packed.end());
  gzip.resize(gzip.size() + 8);  // a checksum and a size that nobody gets to
  expect_too_large(make_gzip(), gzip, "more than the expected 10 bytes;");
  // Behind a filter, too, where it would not have to be of one size.
  CodecChain chain;
  chain.add(make_base64());
  chain.add(make_gzip());
  Bytes out(10);
  EXPECT_THAT(refusal_of([&] { chain.decode(gzip, out); }).text,
              HasSubstr("decoded size is more than the expected 16 bytes;"));
  // Where many sizes are possible.
  CodecChain twice;
  twice.add(make_zlib());
  twice.add(make_gzip());
  EXPECT_THAT(refusal_of([&] { twice.decode(gzip, out); }).text,
              AllOf(HasSubstr("decoded size is more than the "),
                    HasSubstr(" bytes it may have at most; the chunk is damaged")));
}

TEST(CodecTable, NamesWhatItDoesNotKnow) {
  const auto refusal = refusal_of([] { make_codec("zfpy\n", {}); });
  EXPECT_EQ(refusal.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(refusal.text, HasSubstr("'zfpy\\x0a'"));
}

TEST(CodecTable, RefusesBadConfigurations) {
  for (const char* text :
       {R"({"id":"delta"})", R"({"id":"delta","dtype":"O"})", R"({"id":"delta","dtype":"<U3"})",
        R"({"id":"delta","dtype":"b1"})", R"({"id":"delta","dtype":7})",
        R"({"id":"fixedscaleoffset","dtype":"f4","scale":"x","offset":1})",
        R"({"id":"shuffle","elementsize":0})", R"({"id":"shuffle","elementsize":-1})",
        R"({"id":"crc32","location":"middle"})", R"({"id":"lzma","format":9})",
        R"({"id":"lzma","format":3})", R"({"id":"lzma","format":3,"filters":[{}]})",
        R"({"id":"lzma","format":3,"filters":[{"id":33,"preset":77}]})",
        R"({"id":"lzma","format":3,"filters":[{"id":33,"dict_size":4000000000}]})",
        R"({"id":"categorize","dtype":"<U3","labels":[1]})",
        R"({"id":"categorize","dtype":"<f4","labels":["a"]})",
        R"({"id":"jenkins_lookup3","prefix":"a"})"}) {
    const Value configuration = parse_json(text);
    const Dict& dict = *as_dict(&configuration);
    EXPECT_EQ(refusal_of([&] { make_codec(*as_text(find_value(dict, "id")), dict); }).kind,
              ErrorKind::kUnsupported)
        << text;
  }
}

TEST(Numbers, HalvesConvertBothWays) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(half);
    if (wide == wide) {
      ASSERT_EQ(to_half(wide).bits, bits);
    } else {
      ASSERT_NE(to_float(to_half(wide)), to_float(to_half(wide)));
    }
  }
  EXPECT_EQ(to_half(65519.996F).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0F).bits, 0x7c00);
  EXPECT_EQ(to_half(2049.0F).bits, 0x6800) << "ties to even";
  EXPECT_EQ(to_half(0x1p-25F).bits, 0x0000) << "ties to even";
  EXPECT_EQ(to_half(0x1.8p-24F).bits, 0x0002);
}

TEST(Numbers, CastAsNumpyDoes) {
  EXPECT_EQ(convert_number<std::uint8_t>(-1.0), 255);
  EXPECT_EQ(convert_number<std::int32_t>(1e30), 0);
  EXPECT_EQ(convert_number<std::int64_t>(1e30), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(convert_number<std::uint64_t>(1.5e19), 15000000000000000000U);
  EXPECT_EQ(convert_number<bool>(0.5), true);
  EXPECT_EQ(convert_number<std::int8_t>(2.9), 2);
}

}  // namespace
}  // namespace npyfs
