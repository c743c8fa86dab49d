// SPDX-License-Identifier: Apache-2.0
//
// What the golden files of tests/data/kaldi do not show: places in messages, guesses, hostile
// headers, random damage.

#include "formats/kaldi/kaldi.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/bytes/inflate.h"
#include "formats/kaldi/ark.h"
#include "formats/kaldi/location.h"
#include "formats/kaldi/text.h"
#include "tests/formats/records.h"

namespace npyfs::testing {

namespace {

using std::string_literals::operator""s;

std::string table(const std::string& name) { return data_path("kaldi/tables/" + name); }

ObjectIndex read(const std::string& bytes, const std::string& kind = "", bool permissive = false) {
  OpenContext context;
  context.permissive = permissive;
  context.warn = [](const std::string&) {};
  const auto data = std::as_bytes(std::span(bytes));
  auto source = std::make_shared<MemorySource>("t.ark", std::vector(data.begin(), data.end()));
  return read_ark(source, *parse_wanted(kind), context);
}

std::string refusal_of(const std::string& bytes, const std::string& kind = "") {
  try {
    read(bytes, kind);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// All items of the main field, decoded; nothing must be read out of bounds.
void decode_all(const ObjectIndex& index) {
  struct Context : DecodeContext {
    void require_intact(const RecordTable&, std::uint64_t) override {}
    void mark_damaged(ByteRange, std::exception_ptr) override {}
  } context;
  const auto table = make_kaldi_table(index);
  for (const Field& field : table->fields()) {
    for (std::uint64_t record = 0; record < table->size(); ++record) {
      Item item;
      field.typed->inspect(record, item);
      const std::uint64_t nbytes = *element_count(item.shape) * item.dtype.itemsize;
      if (nbytes > (1 << 24) || !field.typed->decoded(record)) {
        continue;
      }
      std::vector<std::byte> out(nbytes);
      try {
        field.typed->decode(record, out, context);
      } catch (const Error&) {
      }
    }
  }
}

TEST(Kaldi, GuessesWhatFourByteNumbersAre) {
  const std::pair<const char*, ObjectKind> tables[] = {
      {"ali.ark", ObjectKind::kInt32Vector},
      {"int.ark", ObjectKind::kInt32},
      {"float.ark", ObjectKind::kFloat},
      {"int_vecvec.ark", ObjectKind::kInt32Vectors},
      {"int_pairs.ark", ObjectKind::kInt32Pairs},
      {"float_pairs.ark", ObjectKind::kFloatPairs},
      {"post.ark", ObjectKind::kPosterior},
      {"double.ark", ObjectKind::kDouble},
      {"bool.ark", ObjectKind::kBool},
      {"ivec_empty.ark", ObjectKind::kInt32Vector}};
  for (const auto& [name, kind] : tables) {
    const ObjectIndex index = read(read_file(table(name)));
    ASSERT_FALSE(index.objects.empty()) << name;
    for (const Object& object : index.objects) {
      EXPECT_EQ(object.kind, kind) << name;
    }
    decode_all(index);
  }
}

TEST(Kaldi, FindsTheKindOfLines) {
  EXPECT_EQ(read("a 1 2\nb 3\n").objects[0].kind, ObjectKind::kInt32Vector);
  EXPECT_EQ(read("a 1\nb 3\n").objects[0].kind, ObjectKind::kInt32);
  EXPECT_EQ(read("a 1.5\nb 3\n").objects[0].kind, ObjectKind::kFloat);
  EXPECT_EQ(read("a 1 ; 2 3 ; ;\n").objects[0].kind, ObjectKind::kInt32Vectors);
  EXPECT_EQ(read("a 1 2 ; 3 4\n").objects[0].kind, ObjectKind::kInt32Pairs);
  EXPECT_EQ(read("a [ 1 0.5 ] [ ]\nb [ 2 1 ]\n").objects[1].kind, ObjectKind::kPosterior);
  EXPECT_EQ(read("a T\nb F\n").objects[0].kind, ObjectKind::kBool);
  EXPECT_EQ(read("a one two\nb 3\n").objects[1].kind, ObjectKind::kTokens);
}

TEST(Kaldi, NamesFileAndByte) {
  EXPECT_EQ(refusal_of("k \0BFM \4\xf9\xff\xff\xff\4\3\0\0\0"s),
            "t.ark at byte 7: the matrix is -7 x 3, expected two dimensions above 0 or 0 x 0; the "
            "file is damaged or no Kaldi table");
  EXPECT_NE(refusal_of("k \0BFM \4\xff\xff\xff\x7f\4\xff\xff\xff\x7f"s).find("t.ark at byte 17"),
            std::string::npos);
  EXPECT_NE(refusal_of("k [ 1 2\n 3 ]\n").find("expected 2"), std::string::npos);
  EXPECT_NE(refusal_of("k [ .5 ]\n").find("'.5'"), std::string::npos);
  EXPECT_NE(refusal_of("k nan 1\n", "int32vector").find("'nan'"), std::string::npos);
  EXPECT_NE(refusal_of("\0BFM "s).find("expected a key"), std::string::npos);
}

TEST(Kaldi, SplitsAtTheSixBlanksOnly) {
  EXPECT_EQ(join_words("a\t b\v\f\rc\xc2\xa0"
                       "d \xe3\x80\x80"),
            "a b c\xc2\xa0"
            "d \xe3\x80\x80");
}

TEST(Kaldi, TakesLocationsApart) {
  const ScriptLocation plain = parse_location("a b.ark:12[0:3]");
  EXPECT_EQ(plain.path, "a b.ark");
  EXPECT_EQ(plain.offset, 12U);
  EXPECT_EQ(plain.range, "0:3");
  EXPECT_EQ(parse_location("br[1].ark:5").path, "br[1].ark");
  EXPECT_EQ(parse_location("gunzip -c x |[0:1]").kind, ScriptLocation::Kind::kPipe);
  for (const char* text : {"-", "", "|x", "ark:x", "scp,p:x", "x[]", "x[1][2:3]", "a|b", "x ",
                           "x:99999999999999999999"}) {
    EXPECT_EQ(parse_location(text).kind, ScriptLocation::Kind::kRefused) << text;
  }
}

TEST(Kaldi, ClampsRangesAsKaldiDoes) {
  Object matrix;
  matrix.rows = 10;
  matrix.cols = 4;
  std::string why;
  EXPECT_EQ(parse_range("5:12", matrix, why)->rows, 5U);
  EXPECT_EQ(parse_range(" +1:2, 3:3", matrix, why)->first_col, 3U);
  EXPECT_EQ(parse_range(":,1:2", matrix, why)->cols, 2U);
  for (const char* text :
       {"5:13", "10:10", "3", "3:", ":3", "2:1", "-1:2", "0:3,0:4", "0:3,", "0x1:2", "1:2 "}) {
    EXPECT_FALSE(parse_range(text, matrix, why)) << text;
  }
}

TEST(Kaldi, EmptyCompressedMatrixHasFourBytesMore) {
  const ObjectIndex index = read(read_file(table("empty_cm.ark")));
  EXPECT_EQ(index.objects.size(), 3U);
  EXPECT_EQ(index.keys[1], "ok");
}

TEST(Kaldi, ScriptLinesAreNamed) {
  const TemporaryFolder folder;
  write_file(folder / "a.ark", "k [ 1 2 ]\n");
  write_file(folder / "a.scp", "k a.ark:2\nx a.ark:2 \n\n");
  EXPECT_NE(refusal(kScp, folder / "a.scp").find("a.scp line 3: the line is blank"),
            std::string::npos);
  write_file(folder / "b.scp", "k a.ark:2\nx touch PWNED |\ny none.ark:1\n");
  const std::string text = refusal(kScp, folder / "b.scp");
  EXPECT_NE(text.find("b.scp line 2"), std::string::npos) << text;
  EXPECT_NE(text.find("and 1 more lines"), std::string::npos) << text;
}

// Any change of any file is refused or understood; nothing crashes or reads beyond its bytes.
TEST(Kaldi, RandomDamage) {
  constexpr int kRounds = 400;
  std::mt19937 random(20);
  for (const char* name :
       {"mixed.ark", "sparse.ark", "sparse_text.ark", "post.ark", "post_text.ark", "int_vecvec.ark",
        "mat_text_hand.ark", "wav.ark", "empty_cm.ark", "cm2_kaldiio.ark", "text", "bool.ark"}) {
    const std::string good = read_file(table(name));
    for (int i = 0; i < kRounds; ++i) {
      std::string bytes = good.substr(0, i % 4 == 0 ? random() % (good.size() + 1) : good.size());
      for (int flips = static_cast<int>(random() % 4); flips > 0 && !bytes.empty(); --flips) {
        bytes[random() % std::min<std::size_t>(bytes.size(), 4000)] = static_cast<char>(random());
      }
      try {
        decode_all(read(bytes, "", i % 2 == 0));
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace

}  // namespace npyfs::testing
