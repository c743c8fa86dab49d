// SPDX-License-Identifier: Apache-2.0
//
// What the golden files of tests/data/kaldi do not show: places in messages, guesses, hostile
// headers, random damage.

#include "formats/kaldi/kaldi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <utility>

#include "formats/bytes/inflate.h"
#include "formats/kaldi/ark.h"
#include "formats/kaldi/location.h"
#include "formats/kaldi/pipe.h"
#include "formats/kaldi/specifier.h"
#include "formats/kaldi/text.h"
#include "tests/formats/records.h"

namespace npyfs::testing {

namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
void decode_all(ObjectIndex index) {
  DecodeContext context(trusting_verifier());
  const auto table = make_kaldi_table(std::move(index));
  for (const Field& field : table->fields()) {
    for (std::uint64_t record = 0; field.typed != nullptr && record < table->size(); ++record) {
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
    ObjectIndex index = read(read_file(table(name)));
    ASSERT_FALSE(index.objects.empty()) << name;
    for (const Object& object : index.objects) {
      EXPECT_EQ(object.kind, kind) << name;
    }
    decode_all(std::move(index));
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

// kaldi-table.cc, ClassifyRspecifier and ClassifyWspecifier.
TEST(Kaldi, KnowsSpecifiersOfReadersAndWriters) {
  for (const char* words : {"ark", "scp", "ark,s,cs", "o b,np,ark", "scp,t,no,ns,ncs,bg,p"}) {
    EXPECT_TRUE(parse_table_specifier(words)) << words;
  }
  for (const char* words : {"ark,f", "ark,scp", "ark,scp,t,nf", "scp,p,b"}) {
    EXPECT_TRUE(is_table_specifier(words)) << words;
    EXPECT_EQ(parse_table_specifier(words).has_value(), std::string(words) == "scp,p,b") << words;
  }
  for (const char* words :
       {"", "s,cs", "ark,nbg", "ark,nt", "scp,ark", "ark,ark", "ark,", "ark,s,f", "arks", "a b"}) {
    EXPECT_FALSE(is_table_specifier(words)) << words;
  }
  EXPECT_TRUE(parse_table_specifier("ark,np,p,s")->permissive);
  EXPECT_FALSE(parse_table_specifier("ark,p,np")->permissive);
  EXPECT_TRUE(parse_table_specifier("s,scp")->keys_sorted);
  EXPECT_TRUE(parse_table_specifier("s,scp")->is_script);
  EXPECT_EQ(parse_location("ark,nbg:x").kind, ScriptLocation::Kind::kFile);
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

TEST(Kaldi, AScriptLineWithAZeroByteIsNamedAndLeftOut) {
  const TemporaryFolder folder;
  write_file(folder / "a.ark", "k [ 1 2 ]\n");
  const std::string good = "k a.ark:2\n";
  write_file(folder / "a.scp", good + "k\0b a.ark:2\n"s + good + "b a.ark:2\0x\nc\n"s);
  const std::string text = refusal(kScp, folder / "a.scp");
  EXPECT_NE(text.find("a.scp line 2: the line holds a zero byte"), std::string::npos) << text;
  EXPECT_NE(text.find("(and 2 more lines)"), std::string::npos) << text;
  OpenContext permissive;
  permissive.permissive = true;
  const Opened opened = open_records(kScp, folder / "a.scp", permissive);
  EXPECT_EQ(opened.table->size(), 2U);
  // Each kind of fault has its own warning.
  ASSERT_EQ(opened.warnings.size(), 2U);
  EXPECT_NE(opened.warnings[0].find("line 2: the line holds a zero byte, expected a key and a "
                                    "place; left out (and 1 more lines)"),
            std::string::npos)
      << opened.warnings[0];
  EXPECT_NE(opened.warnings[1].find("line 5: key 'c' has no place"), std::string::npos)
      << opened.warnings[1];
}

std::string int4(std::int32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return "\4" + bytes;
}

// A float matrix of three columns, all zeroes.
std::string matrix(std::int32_t rows) {
  return "\0BFM "s + int4(rows) + int4(3) + std::string(static_cast<std::size_t>(rows) * 12, '\0');
}

// kaldiio's envelope: its name, the number of length bytes, the length, a file.
std::string envelope(const std::string& name, const std::string& file) {
  std::string length;
  for (std::size_t n = file.size(); n > 0; n >>= 8) {
    length += static_cast<char>(n & 0xff);
  }
  return name + static_cast<char>(length.size()) + length + file;
}

TEST(Kaldi, FilesInKaldiiosEnvelopeArePayloads) {
  const std::string flac = read_file(data_path("payloads/audio/s16.flac"));
  const std::string npy = read_file(data_path("payloads/audio/s16.flac.npy"));
  ObjectIndex sounds = read("a " + envelope("AUDIO", flac) + "b " + envelope("AUDIO", flac));
  EXPECT_EQ(sounds.objects[1].nbytes, flac.size());
  EXPECT_EQ(stored_bytes(sounds, sounds.objects[1]), flac);
  const auto audio = make_kaldi_table(std::move(sounds));
  EXPECT_EQ(audio->fields()[0].typed, nullptr);
  EXPECT_EQ(audio->fields()[0].extension, "wav");
  EXPECT_TRUE(audio->fields()[0].time_series);
  const auto arrays = make_kaldi_table(read("a " + envelope("NPY", npy)));
  EXPECT_EQ(arrays->fields()[0].extension, "npy");
  EXPECT_TRUE(arrays->fields()[0].time_series);
  EXPECT_EQ(read_record(*arrays, 0), npy);
  const std::string numbers = read_file(table("npy_i64.ark"));
  EXPECT_FALSE(make_kaldi_table(read(numbers))->fields()[0].time_series);
}

TEST(Kaldi, FilesInAnEnvelopeAreOfOneKindAndWhole) {
  const std::string npy = envelope("NPY", read_file(data_path("payloads/audio/s16.flac.npy")));
  EXPECT_NE(refusal_of("a " + npy + "b " + envelope("AUDIO", "fLaC")).find("kind of those before"),
            std::string::npos);
  EXPECT_NE(refusal_of("a " + npy + "b " + matrix(2)).find("before it, .npy file"),
            std::string::npos);
  EXPECT_NE(refusal_of("a " + matrix(2) + "b " + npy).find("type .npy file"), std::string::npos);
  EXPECT_NE(refusal_of("a " + npy, "matrix").find(".npy file, expected a matrix"),
            std::string::npos);
  // What a length claims must be there, whatever it is.
  for (std::size_t cut = 4; cut < npy.size(); cut += 97) {
    EXPECT_NE(refusal_of("a " + npy.substr(0, cut)), "") << cut;
  }
  EXPECT_NE(refusal_of("a NPY\10" + std::string(8, '\xff') + "x").find("expected at most 1"),
            std::string::npos);
  EXPECT_NE(refusal_of("a PKL\x80\3N.").find("never loaded"), std::string::npos);
  EXPECT_NE(refusal_of("a fLaC....").find("does not say its length"), std::string::npos);
  // Words are words.
  EXPECT_EQ(read("a NPY is a word\nb AUDIO\n").objects[1].kind, ObjectKind::kTokens);
}

TEST(Kaldi, AFileInAnEnvelopeThatIsCutIsOneRecordsDamage) {
  const TemporaryFolder folder;
  const std::string npy = envelope("NPY", read_file(data_path("payloads/audio/s16.flac.npy")));
  write_file(folder / "a.ark", "a " + npy);
  write_file(folder / "b.ark", "b " + npy.substr(0, npy.size() - 1));
  write_file(folder / "c.flac", read_file(data_path("payloads/audio/s16.flac")));
  write_file(folder / "a.scp", "a a.ark:2\nb b.ark:2\n");
  const Opened opened = open_records(kScp, folder / "a.scp");
  EXPECT_EQ(opened.table->damage(0), nullptr);
  ASSERT_NE(opened.table->damage(1), nullptr);
  EXPECT_NE(std::string(opened.table->damage(1)->error.what()).find("a.scp line 2: "),
            std::string::npos);
  write_file(folder / "b.scp", "a a.ark:2[0:1]\n");
  EXPECT_NE(refusal(kScp, folder / "b.scp").find("expected none for a .npy file"),
            std::string::npos);
  write_file(folder / "c.scp", "c c.flac\n");
  EXPECT_EQ(open_records(kScp, folder / "c.scp").table->fields()[0].extension, "wav");
}

// numpy.load() and soundfile.read() of nothing fail, so kaldiio does.
TEST(Kaldi, AFileOfNoBytesInAnEnvelopeIsOneRecordsDamage) {
  const std::string npy = envelope("NPY", read_file(data_path("payloads/audio/s16.flac.npy")));
  const std::string flac = envelope("AUDIO", read_file(data_path("payloads/audio/s16.flac")));
  const std::pair<const char*, std::string> both[] = {{"NPY", npy}, {"AUDIO", flac}};
  for (const auto& [name, whole] : both) {
    SCOPED_TRACE(name);
    const std::string nothing = name + "\4"s + std::string(4, '\0');
    const TemporaryFolder folder;
    const std::string begin = "a " + whole + "b ";
    write_file(folder / "a.ark", begin + nothing + "c " + whole);
    write_file(folder / "a.scp", "a a.ark:2\nb a.ark:" + std::to_string(begin.size()) + "\n");
    const Opened script = open_records(kScp, folder / "a.scp");
    const Opened archive = open_records(kArk, folder / "a.ark");
    ASSERT_EQ(script.table->size(), 2U);
    ASSERT_EQ(archive.table->size(), 3U);
    for (const Opened* opened : {&script, &archive}) {
      EXPECT_EQ(opened->table->damage(0), nullptr);
      ASSERT_NE(opened->table->damage(1), nullptr);
      EXPECT_THAT(opened->table->damage(1)->error.what(),
                  AllOf(HasSubstr("a.ark at byte " + std::to_string(begin.size() + nothing.size())),
                        HasSubstr("has 0 bytes")));
      EXPECT_EQ(opened->table->damaged_count(), 1U);
    }
    EXPECT_THAT(script.table->damage(1)->error.what(), HasSubstr("a.scp line 2: "));
    EXPECT_EQ(archive.table->damage(2), nullptr);
    EXPECT_EQ(read_record(*archive.table, 2), read_record(*archive.table, 0));
  }
}

// A script whose lines name objects of one file.
struct ScriptOf {
  TemporaryFolder folder;

  // `places`: an offset each.
  std::string write(const std::string& bytes, const std::vector<std::string>& places) const {
    write_file(folder / "t.ark", bytes);
    std::string lines;
    for (std::size_t i = 0; i < places.size(); ++i) {
      lines += "k" + std::to_string(i) + " " + folder / "t.ark:" + places[i] + "\n";
    }
    write_file(folder / "t.scp", lines);
    return folder / "t.scp";
  }
};

OpenContext permissive() {
  OpenContext context;
  context.permissive = true;
  return context;
}

TEST(Kaldi, OneWrongPlaceChangesNothingElse) {
  const ScriptOf script;
  // Ten rows: from the B on it is a line of text.
  const std::string path =
      script.write("a " + matrix(10) + "b " + matrix(2) + "c " + matrix(3), {"3", "139", "180"});
  EXPECT_NE(refusal(kScp, path).find("t.scp line 1"), std::string::npos) << refusal(kScp, path);
  const Opened opened = open_records(kScp, path, permissive());
  ASSERT_EQ(opened.table->size(), 2U);
  EXPECT_EQ(opened.table->damaged_count(), 0U);
  Item item;
  opened.table->fields()[0].typed->inspect(1, item);
  EXPECT_EQ(item.dtype, DType::simple("<f4"));
  EXPECT_EQ(item.shape, (Shape{3, 3}));
}

TEST(Kaldi, AZeroByteInOneTextLeavesTheOthersAlone) {
  const ScriptOf script;
  const std::string path = script.write("z\0z\n [\n 1 2 ]\n [\n 3 4 ]\n"s, {"0", "4", "15"});
  EXPECT_EQ(open_records(kScp, path, permissive()).table->size(), 2U);
}

TEST(Kaldi, WhatIsCutIsItsRecordsDamage) {
  const std::pair<std::string, std::string> objects[] = {
      {"\0BFM "s + int4(2) + int4(3) + std::string(24, '\0'), ""},
      {"\0BFV "s + int4(3) + std::string(12, '\0'), ""},
      {"\0B"s + int4(2) + int4(7) + int4(8), "int32vector"},
      {"\0B"s + int4(1) + int4(2) + int4(8) + int4(9), "int32vectors"},
      {"\0B"s + int4(1) + int4(1) + int4(8) + int4(9), "posterior"},
      {"\0BSM "s + int4(1) + "SV " + int4(3) + int4(1) + int4(2) + int4(0), ""},
      {" [\n 1 2\n 3 4 ]\n", ""}};
  for (const auto& [object, kind] : objects) {
    const ScriptOf script;
    const std::string path = script.write(object + object.substr(0, object.size() - 4),
                                          {"0", std::to_string(object.size())});
    OpenContext context;
    if (!kind.empty()) {
      context.decode["x"] = kind;
    }
    const Opened opened = open_records(kScp, path, context);
    ASSERT_EQ(opened.table->size(), 2U) << printable(object);
    EXPECT_EQ(opened.table->damage(0), nullptr) << printable(object);
    ASSERT_NE(opened.table->damage(1), nullptr) << printable(object);
    EXPECT_NE(std::string(opened.table->damage(1)->error.what()).find("t.scp line 2: "),
              std::string::npos);
  }
}

TEST(Kaldi, GuessesBeyondObjectsThatAreAllAlike) {
  std::string integers;
  std::string pairs;
  for (int i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i) + " ";
    integers += key + "\0B"s + int4(i < 8 ? 0 : i);
    pairs += key + "\0B"s + (i < 8 ? int4(0) : int4(1) + int4(5) + int4(6));
  }
  EXPECT_EQ(read(integers).objects[9].kind, ObjectKind::kInt32);
  EXPECT_EQ(read(pairs).objects[9].kind, ObjectKind::kInt32Pairs);
  EXPECT_EQ(read(pairs).objects.size(), 20U);
  // What is only guessed can be said.
  EXPECT_NE(
      refusal_of("a \0B"s + int4(1) + int4(5) + "b \0B"s + int4(1) + "\3").find("--decode x="),
      std::string::npos);
}

// 26 integers and a part of the next 92 take as many bytes as 26 pairs.
TEST(Kaldi, ACutTableOfVectorsIsNoTableOfPairs) {
  const std::string whole = read_file(table("ali.ark"));
  const std::string refusal = refusal_of(whole.substr(0, 273));
  EXPECT_NE(refusal.find("t.ark at byte 196"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("taken for int32vector"), std::string::npos) << refusal;
}

TEST(Kaldi, SparseMatricesAreOfBoundedSize) {
  EXPECT_NE(refusal_of("k rows=9000 dim=9000 [ 1 1 ]\n").find("[ 1 1 ]"), 0U);
  std::string text = "k rows=9000 ";
  for (int i = 0; i < 9000; ++i) {
    text += "dim=9000 [ ] ";
  }
  EXPECT_NE(refusal_of(text + "\n").find("2^26"), std::string::npos);
}

TEST(Kaldi, ALineOfAnotherKindEndsAnArchive) {
  EXPECT_NE(refusal_of("a 1\nb 2\nc x\n", "int32").find("'x'"), std::string::npos);
  EXPECT_EQ(read("a 1\nb 2\nc x\nd 3\n", "int32", true).objects.size(), 2U);
}

TEST(Kaldi, WordsThatLookLikeBracketsAreWords) {
  const ObjectIndex index = read("a hi\nb [laughter] good\nc rows=5 seats\n");
  ASSERT_EQ(index.objects.size(), 3U);
  EXPECT_EQ(index.objects[1].kind, ObjectKind::kTokens);
  EXPECT_EQ(index.objects[2].rows, 2U);
  EXPECT_NE(refusal_of("k [ " + std::string(401, '1') + " ]\n").find("more than 400"),
            std::string::npos);
}

TEST(Kaldi, ChunksBehindTheSamplesBelongToTheWave) {
  std::string wave = read_file(table("wav.ark"));
  wave = wave.substr(wave.find("RIFF"));
  std::uint32_t riff_nbytes = 0;
  std::memcpy(&riff_nbytes, wave.data() + 4, 4);
  wave = wave.substr(0, riff_nbytes + 8) + "LIST" + std::string("\4\0\0\0", 4) + "abcd";
  riff_nbytes += 12;
  std::memcpy(wave.data() + 4, &riff_nbytes, 4);
  const ObjectIndex index = read("a " + wave + "b " + wave);
  ASSERT_EQ(index.objects.size(), 2U);
  EXPECT_EQ(index.keys[1], "b");
}

TEST(Kaldi, NumbersBeginAsKaldiTakesThem) {
  EXPECT_EQ(read("k [ -.5 1 ]\n").objects[0].rows, 2U);
  EXPECT_EQ(read("a +-5\n").objects[0].kind, ObjectKind::kTokens);
  EXPECT_EQ(parse_location("ark files/x:5").kind, ScriptLocation::Kind::kFile);
  EXPECT_EQ(parse_location("data/my ark:5").kind, ScriptLocation::Kind::kFile);
  EXPECT_EQ(parse_location("scp,p:x").kind, ScriptLocation::Kind::kRefused);
}

TEST(Kaldi, KeysThatDoNotRiseAreNamedWithTheirPlace) {
  OpenContext context;
  context.options[kKeysSorted];
  const ScriptOf script;
  script.write("b [ 1 ]\na [ 2 ]\n", {});
  EXPECT_NE(refusal(kArk, script.folder / "t.ark", context).find("t.ark at byte 10: key 'a'"),
            std::string::npos);
  write_file(script.folder / "t.scp", "b t.ark:2\na t.ark:10\n");
  EXPECT_NE(refusal(kScp, script.folder / "t.scp", context).find("t.scp line 2: key 'a'"),
            std::string::npos);
}

TEST(Kaldi, ALostFileIsNamedWithWhereItWasLookedFor) {
  const TemporaryFolder folder;
  write_file(folder / "t.scp", "a gone.ark:2\n");
  EXPECT_NE(refusal(kScp, folder / "t.scp").find("--base-dir (not given)"), std::string::npos);
  EXPECT_NE(refusal(kScp, folder / "t.scp", permissive()).find("no line of it"), std::string::npos);
}

TEST(Kaldi, ARangeSaysHowFarItMayReach) {
  const ScriptOf script;
  script.write(matrix(10), {});
  write_file(script.folder / "t.scp", "k t.ark[0:13]\n");
  const std::string text = refusal(kScp, script.folder / "t.scp");
  EXPECT_NE(text.find("t.ark at byte 0: the range of key 'k' is 0:13"), std::string::npos) << text;
  EXPECT_NE(text.find("LAST <= 12"), std::string::npos) << text;
}

TEST(Kaldi, ATextThatIsNoFileIsNotDroppedInSilence) {
  const TemporaryFolder folder;
  write_file(folder / "t.ark", matrix(2));
  write_file(folder / "feats.scp", "k " + (folder / "t.ark") + "\n");
  std::filesystem::create_symlink("nowhere", folder / "text");
  OpenContext context;
  std::vector<std::string> said;
  context.warn = [&](const std::string& text) { said.push_back(text); };
  Location location;
  location.path = folder / "";
  location.is_directory = true;
  EXPECT_EQ(kKaldi.open(location, context)->fields().size(), 1U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("no regular file"), std::string::npos);
}

// Holds nothing: whatever is read is decoded.
class NoCache : public ChunkCache {
 public:
  std::shared_ptr<const Block> get(const ChunkSource& chunks, std::uint64_t chunk) override {
    auto block = std::make_shared<Block>();
    decode_block(chunks, chunk, trusting_verifier(), *block);
    return block;
  }
};

std::string failure_of_command(const std::string& command, const std::string& folder,
                               std::chrono::milliseconds most = std::chrono::minutes(10)) {
  NoCache cache;
  const auto script = std::make_shared<MemorySource>("s.scp", std::vector<std::byte>());
  try {
    const SourcePtr output = run_pipe(command, folder, script, cache, most);
    std::vector<std::byte> bytes(output->nbytes());
    output->read_at(0, bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// None of these would end by itself.
TEST(Kaldi, ACommandHasItsTimeEvenWithItsOutputClosed) {
  const TemporaryFolder folder;
  for (const std::string command : {"exec 1>&-; sleep 100000", "sleep 100000"}) {
    const std::string failure =
        failure_of_command(command, folder / "", std::chrono::milliseconds(300));
    EXPECT_NE(failure.find("runs for more than 0.3"), std::string::npos) << failure;
  }
}

TEST(Kaldi, ACommandThatFailsIsNamedInShort) {
  const TemporaryFolder folder;
  EXPECT_EQ(failure_of_command("printf abc", folder / ""), "");
  const std::string failure =
      failure_of_command(": " + std::string(5000, 'x') + "; exit 3", folder / "");
  EXPECT_NE(failure.find("xxx"), std::string::npos) << failure;
  EXPECT_LT(failure.size(), 400U);
}

TEST(Kaldi, ACommandMustSayTheSameEachTime) {
  const TemporaryFolder folder;
  EXPECT_NE(failure_of_command("echo >> n; wc -l < n", folder / "").find("prints other bytes"),
            std::string::npos);
}

TEST(Kaldi, ACommandWhoseEndNobodyTellsIsNoSuccess) {
  const TemporaryFolder folder;
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const std::string failure = failure_of_command("exit 3", folder / "");
  std::signal(SIGCHLD, before);
  EXPECT_NE(failure.find("cannot wait for"), std::string::npos) << failure;
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
        ObjectIndex index = read(bytes, "", i % 2 == 0);
        EXPECT_EQ(index.keys.size(), index.objects.size()) << name << ", round " << i;
        for (const Object& object : index.objects) {
          EXPECT_LE(object.offset + object.nbytes, bytes.size()) << name << ", round " << i;
        }
        decode_all(std::move(index));
      } catch (const Error& error) {
        EXPECT_NE(bytes, good) << name << ": " << error.what();
      }
    }
  }
}

}  // namespace

}  // namespace npyfs::testing
