// SPDX-License-Identifier: Apache-2.0
//
// Zip directories as writers make them, and as nobody should.

#include "formats/bytes/zip.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "formats/bytes/error.h"
#include "tests/support/fake_source.h"
#include "tests/support/zip_writer.h"

namespace npyfs {
namespace {

using testing::FakeSource;
using testing::u16;
using testing::u32;
using testing::ZipWriter;

std::string read_member(const ByteSource& source, const ZipMember& member) {
  std::string out(member.nbytes, '\0');
  read_zip_member(source, member, std::as_writable_bytes(std::span(out)));
  return out;
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal_of(const std::string& bytes) {
  const FakeSource source("set.zip", bytes);
  return refusal([&] { const ZipDirectory directory(source); });
}

const std::string kText = std::string(5000, 'a') + "the end";

TEST(Zip, MembersStoredAndDeflated) {
  ZipWriter writer;
  writer.add("stored", kText);
  writer.add(
      "deflated", kText,
      {.method = 8, .flags = 0, .zip64 = false, .local_extra = "extra!", .claimed_nbytes = ""});
  writer.add("empty", "");
  for (const std::string& bytes : {writer.finish(), writer.finish("a comment"), writer.finish64(),
                                   "prefix" + writer.finish(), "prefix" + writer.finish64()}) {
    const FakeSource source("set.zip", bytes);
    const ZipDirectory directory(source);
    ASSERT_EQ(directory.size(), 3U);
    EXPECT_EQ(directory[0].name, "stored");
    EXPECT_EQ(read_member(source, directory[0]), kText);
    EXPECT_EQ(read_member(source, directory[1]), kText);
    EXPECT_EQ(read_member(source, directory[2]), "");
    EXPECT_EQ(bytes.substr(zip_data_offset(source, directory[0]), kText.size()), kText);
    std::uint32_t crc = 0;
    std::memcpy(&crc, bytes.data() + directory[1].crc_offset, sizeof crc);
    EXPECT_EQ(crc, directory[1].crc32);
  }
}

TEST(Zip, SizesInTheZip64Extra) {
  ZipWriter writer;
  writer.add("first", "x");
  ZipWriter::Options options;
  options.zip64 = true;
  writer.add("second", kText, options);
  const FakeSource source("set.zip", writer.finish());
  const ZipDirectory directory(source);
  EXPECT_EQ(directory[1].stored_nbytes, kText.size());
  EXPECT_EQ(read_member(source, directory[1]), kText);
}

TEST(Zip, OfEqualNamesTheLastCounts) {
  ZipWriter writer;
  writer.add("b", "old");
  writer.add("a", "other");
  writer.add("b", "new");
  const FakeSource source("set.zip", writer.finish());
  const ZipDirectory directory(source);
  EXPECT_EQ(directory.find("b"), 2U);
  EXPECT_EQ(directory.find("a"), 1U);
  EXPECT_EQ(directory.find("c"), std::nullopt);
  EXPECT_TRUE(directory.replaced(0));
  EXPECT_FALSE(directory.replaced(1));
  EXPECT_FALSE(directory.replaced(2));
}

TEST(Zip, DamageIsFoundByTheChecksum) {
  for (const std::uint16_t method : {0, 8}) {
    ZipWriter writer;
    ZipWriter::Options options;
    options.method = method;
    writer.add("name", kText, options);
    std::string bytes = writer.finish();
    bytes[40] = static_cast<char>(bytes[40] ^ 4);
    const FakeSource source("set.zip", bytes);
    const ZipDirectory directory(source);
    EXPECT_THROW(read_member(source, directory[0]), Error);
  }
}

TEST(Zip, AMemberHasOneName) {
  ZipWriter writer;
  writer.add("first", kText);
  const std::size_t header = writer.archive.size();
  writer.add("x/0.1", kText);
  const std::string whole = writer.finish();
  const std::string expected =
      "set.zip at byte " + std::to_string(header + 30) +
      ": the name of 'x/0.3' in its own header is 'x/0.1', expected the same as in the archive's "
      "directory; the file is damaged: copy it again";
  std::string bytes = whole;
  bytes.replace(bytes.rfind("x/0.1"), 5, "x/0.3");
  const FakeSource source("set.zip", bytes);
  const ZipDirectory directory(source);
  EXPECT_EQ(read_member(source, directory[0]), kText);
  EXPECT_EQ(refusal([&] { read_member(source, directory[1]); }), expected);
  EXPECT_EQ(refusal([&] { zip_data_offset(source, directory[1]); }), expected);
}

TEST(Zip, EncryptedAndUnknownMembersAreNotRead) {
  ZipWriter writer;
  ZipWriter::Options options;
  options.flags = 1;
  writer.add("secret", kText, options);
  options.flags = 0;
  options.method = 12;
  writer.add("bzip2", kText, options);
  const FakeSource source("set.zip", writer.finish());
  const ZipDirectory directory(source);
  EXPECT_FALSE(directory[0].readable());
  EXPECT_NE(refusal([&] { read_member(source, directory[0]); }).find("secret is encrypted"),
            std::string::npos);
  EXPECT_NE(refusal([&] { read_member(source, directory[1]); }).find("method 12"),
            std::string::npos);
}

TEST(Zip, ASizeThatDeflateCannotMakeIsRefusedBeforeMemoryIsTaken) {
  ZipWriter writer;
  ZipWriter::Options options;
  options.method = 8;
  options.claimed_nbytes = u32(0xfffffff0);
  writer.add("bomb", kText, options);
  const FakeSource source("set.zip", writer.finish());
  const ZipDirectory directory(source);
  EXPECT_NE(refusal([&] { require_plausible(source, directory[0]); }).find("bomb"),
            std::string::npos);
}

TEST(Zip, TheSizeMustBeWhatComesOut) {
  for (const int difference : {-1, 1}) {
    ZipWriter writer;
    ZipWriter::Options options;
    options.method = 8;
    options.claimed_nbytes = u32(kText.size() + static_cast<std::size_t>(difference));
    writer.add("name", kText, options);
    const FakeSource source("set.zip", writer.finish());
    const ZipDirectory directory(source);
    EXPECT_NE(refusal([&] { read_member(source, directory[0]); }), "");
  }
}

TEST(Zip, NothingPointsOutside) {
  ZipWriter writer;
  writer.add("name", kText);
  const std::string whole = writer.finish();
  const std::size_t entry = writer.archive.size();
  const auto changed = [&](std::size_t at, const std::string& value) {
    std::string bytes = whole;
    bytes.replace(at, value.size(), value);
    return bytes;
  };
  EXPECT_EQ(refusal_of(whole), "");
  EXPECT_NE(refusal_of(changed(entry + 42, u32(0xfffffff0))), "");              // header
  EXPECT_NE(refusal_of(changed(entry + 42, u32(entry - 10))), "");              // header, cut
  EXPECT_NE(refusal_of(changed(entry + 20, u32(1 << 30) + u32(1 << 30))), "");  // data
  EXPECT_NE(refusal_of(changed(entry + 28, u16(0xffff))), "");                  // name
  EXPECT_NE(refusal_of(changed(entry + 32, u16(0xffff))), "");                  // comment
  EXPECT_NE(refusal_of(changed(whole.size() - 10, u32(1 << 20))), "");          // directory's size
  EXPECT_NE(refusal_of(changed(whole.size() - 6, u32(1 << 30))), "");           // and offset
  EXPECT_NE(refusal_of(changed(whole.size() - 12, u16(7))), "");                // entries
  const FakeSource moved("set.zip", changed(26, u16(0xffff)));
  const ZipDirectory directory(moved);
  EXPECT_NE(refusal([&] { zip_data_offset(moved, directory[0]); }), "");
}

TEST(Zip, EveryTruncationIsRefused) {
  ZipWriter writer;
  writer.add("one", kText);
  writer.add("two", "22");
  for (const std::string& whole : {writer.finish(), writer.finish64()}) {
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const std::string text = refusal_of(whole.substr(0, n));
      ASSERT_NE(text.find("set.zip"), std::string::npos) << n;
    }
  }
}

}  // namespace
}  // namespace npyfs
