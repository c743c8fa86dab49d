// SPDX-License-Identifier: Apache-2.0
//
// Sources of bytes: what is read, what is refused, and what counts as the same file.

#include "formats/bytes/byte_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>

#include "formats/bytes/error.h"
#include "tests/formats/records.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_of;
using testing::FakeSource;
using testing::refusal_of;
using ::testing::Test;
using testing::text_of;
using testing::write_file;

std::string read(const ByteSource& source, std::uint64_t offset, std::size_t nbytes) {
  std::string bytes(nbytes, '?');
  source.read_at(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::optional<ErrorKind> change_of(const ByteSource& source) {
  return refusal_of([&] { source.check_unchanged(); }).kind;
}

class FileSourceTest : public Test {
 protected:
  // The file's times are set long ago, so that every later write gives it another.
  std::shared_ptr<FileSource> open(const std::string& bytes) {
    write_file(path_, bytes);
    const timespec long_ago[2] = {{1'000'000, 0}, {1'000'000, 123'456'789}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path_.c_str(), long_ago, 0), 0);
    return FileSource::open(path_, "the name");
  }

  testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "data";
};

TEST_F(FileSourceTest, ReadsWhatIsThere) {
  const auto source = open("0123456789");
  EXPECT_EQ(source->name(), "the name");
  EXPECT_EQ(source->nbytes(), 10U);
  EXPECT_EQ(source->mtime_ns(), 1'000'000'123'456'789);
  EXPECT_EQ(read(*source, 0, 10), "0123456789");
  EXPECT_EQ(read(*source, 3, 4), "3456");
  EXPECT_EQ(read(*source, 10, 0), "");
  EXPECT_EQ(change_of(*source), std::nullopt);
  EXPECT_FALSE(source->changed());
}

TEST_F(FileSourceTest, RefusesToReadBeyondTheEnd) {
  const auto source = open("0123456789");
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [offset, nbytes] : {std::pair<std::uint64_t, std::size_t>{0, 11},
                                       {9, 2},
                                       {10, 1},
                                       {11, 0},
                                       {11, 1},
                                       {kMost, 1},
                                       {kMost - 1, 4}}) {
    const auto refusal = refusal_of([&, o = offset, n = nbytes] { read(*source, o, n); });
    EXPECT_EQ(refusal.kind, ErrorKind::kCorrupt) << offset << " " << nbytes;
    EXPECT_NE(refusal.text.find("the name at byte " + std::to_string(offset)), std::string::npos)
        << refusal.text;
  }
  EXPECT_FALSE(source->changed());
}

TEST_F(FileSourceTest, RefusesWhatIsNoRegularFile) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of([&] { FileSource::open(fifo, fifo); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { FileSource::open(folder_ / "", "."); }).kind, ErrorKind::kUnsupported);
  const auto missing = refusal_of([&] { FileSource::open(path_, "the name"); });
  EXPECT_EQ(missing.kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.text.find("the name"), std::string::npos) << missing.text;
}

TEST_F(FileSourceTest, FollowsALinkToARegularFile) {
  const auto file = open("abc");
  const std::string link = folder_ / "link";
  std::filesystem::create_symlink("data", link);
  const auto source = FileSource::open(link, "link");
  EXPECT_EQ(read(*source, 0, 3), "abc");
  std::filesystem::remove(link);
  EXPECT_EQ(change_of(*source), ErrorKind::kChanged);
  EXPECT_EQ(change_of(*file), std::nullopt);
}

TEST_F(FileSourceTest, NoticesAppending) {
  const auto source = open("abc");
  const std::uint64_t before = count_changed_sources();
  std::ofstream(path_, std::ios::app) << "d";
  EXPECT_FALSE(source->changed()) << "nobody has looked yet";
  EXPECT_EQ(change_of(*source), ErrorKind::kChanged);
  EXPECT_TRUE(source->changed());
  EXPECT_EQ(change_of(*source), ErrorKind::kChanged);
  EXPECT_EQ(count_changed_sources(), before + 1);
}

TEST_F(FileSourceTest, NoticesReplacementByRename) {
  const auto source = open("abc");
  write_file(folder_ / "other", "abc");
  const timespec same[2] = {{1'000'000, 0}, {1'000'000, 123'456'789}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / "other").c_str(), same, 0), 0);
  std::filesystem::rename(folder_ / "other", path_);
  EXPECT_EQ(change_of(*source), ErrorKind::kChanged);
}

TEST_F(FileSourceTest, NoticesOverwritingInTheSameSize) {
  const auto source = open("abc");
  std::fstream(path_, std::ios::in | std::ios::out) << "x";
  EXPECT_EQ(read(*source, 0, 3), "xbc");
  EXPECT_EQ(change_of(*source), ErrorKind::kChanged);
}

TEST_F(FileSourceTest, NoticesDeletion) {
  const auto source = open("abc");
  std::filesystem::remove(path_);
  EXPECT_EQ(read(*source, 0, 3), "abc");
  const auto refusal = refusal_of([&] { source->check_unchanged(); });
  EXPECT_EQ(refusal.kind, ErrorKind::kChanged);
  EXPECT_NE(refusal.text.find("the name"), std::string::npos) << refusal.text;
}

TEST_F(FileSourceTest, NoticesShrinkingWhileReading) {
  const auto source = open("0123456789");
  std::filesystem::resize_file(path_, 4);
  EXPECT_EQ(read(*source, 0, 4), "0123");
  EXPECT_FALSE(source->changed());
  EXPECT_EQ(refusal_of([&] { read(*source, 0, 5); }).kind, ErrorKind::kChanged);
  EXPECT_TRUE(source->changed());
}

TEST_F(FileSourceTest, RemembersAChangeThatHasBeenUndone) {
  const auto source = open("abc");
  const std::string aside = folder_ / "aside";
  std::filesystem::rename(path_, aside);
  EXPECT_EQ(change_of(*source), ErrorKind::kChanged);
  std::filesystem::rename(aside, path_);
  EXPECT_EQ(change_of(*source), ErrorKind::kChanged);
  EXPECT_EQ(change_of(*FileSource::open(path_, "again")), std::nullopt);
}

TEST_F(FileSourceTest, FindsItsFileFromAnotherWorkingDirectory) {
  open("abc");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_ / "");
  const auto source = FileSource::open("data", "data");
  std::filesystem::current_path(before);
  EXPECT_EQ(change_of(*source), std::nullopt);
}

TEST(MemorySource, ReadsWithinItself) {
  const MemorySource source("memory", bytes_of("abcdef"));
  EXPECT_EQ(read(source, 2, 3), "cde");
  EXPECT_EQ(read(source, 6, 0), "");
  EXPECT_EQ(refusal_of([&] { read(source, 4, 3); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(change_of(source), std::nullopt);
}

std::string some_bytes(std::size_t nbytes) {
  std::string bytes(nbytes, '\0');
  for (std::size_t i = 0; i < nbytes; ++i) {
    bytes[i] = static_cast<char>(i * 31 + i / 251);
  }
  return bytes;
}

// Says that reading over much is worth it, and remembers the reads.
class DearSource : public FakeSource {
 public:
  using FakeSource::FakeSource;
  ReadCost cost() const override { return {std::chrono::milliseconds(1), 1, 10'000}; }
};

std::string read_ranges(const ByteSource& source, const std::vector<ByteRange>& wanted) {
  std::string bytes;
  for (const ByteRange& range : wanted) {
    bytes.append(range.nbytes(), '?');
  }
  std::vector<WantedRange> ranges;
  std::size_t at = 0;
  for (const ByteRange& range : wanted) {
    ranges.push_back(
        {range.begin, std::as_writable_bytes(std::span(bytes)).subspan(at, range.nbytes())});
    at += range.nbytes();
  }
  source.read_ranges(ranges);
  return bytes;
}

std::string slices(const std::string& bytes, const std::vector<ByteRange>& wanted) {
  std::string text;
  for (const ByteRange& range : wanted) {
    text += bytes.substr(range.begin, range.nbytes());
  }
  return text;
}

TEST(Ranges, NeighboursAreReadAsOne) {
  const std::vector<ByteRange> kWanted = {{0, 10},      {10, 20},         {1020, 1030},
                                          {2031, 2040}, {50'000, 89'000}, {89'100, 91'000},
                                          {0, 100},     {100, 200}};
  const DearSource dear("s", some_bytes(200'000));
  EXPECT_EQ(read_ranges(dear, kWanted), slices(dear.bytes(), kWanted));
  // The gap of 1001 bytes is one too many, and a length of 41,000 is too much.
  EXPECT_EQ(dear.reads(), 5U);
  const FakeSource cheap("s", some_bytes(200'000));
  EXPECT_EQ(read_ranges(cheap, kWanted), slices(cheap.bytes(), kWanted));
  EXPECT_EQ(cheap.reads(), 3U);
}

TEST(Ranges, AreAllWithinTheSource) {
  const FakeSource source("s", some_bytes(1000));
  EXPECT_EQ(refusal_of([&] {
              read_ranges(source, {{0, 10}, {995, 1001}});
            }).kind,
            ErrorKind::kCorrupt);
  EXPECT_EQ(source.reads(), 0U);
  EXPECT_EQ(read_ranges(source, {}), "");
}

TEST_F(FileSourceTest, ReadsRangesInPlace) {
  const std::string bytes = some_bytes(100'000);
  const auto source = open(bytes);
  std::vector<ByteRange> wanted;
  for (std::uint64_t at = 0; at + 30 < bytes.size(); at += 31 + at / 7) {
    wanted.push_back({at, at + 30});
  }
  EXPECT_EQ(read_ranges(*source, wanted), slices(bytes, wanted));
}

// The numbers were measured; who changes them measures again.
TEST(ReadCosts, OfAFileAreThoseOfASystemCall) {
  const FakeSource source("s", "");
  EXPECT_EQ(source.cost().gap_nbytes(), 4096U);
  EXPECT_EQ(source.cost().best_nbytes, 256U << 10);
  EXPECT_EQ(source.cost().most_nbytes(), 1U << 20);
  EXPECT_EQ(DearSource("s", "").cost().gap_nbytes(), 1000U) << "of a millisecond's latency";
}

TEST(WindowReader, ReadsMoreWhereReadingIsDear) {
  const DearSource source("s", some_bytes(200'000));
  WindowReader window(source);
  window.at(0, 16);
  window.at(600, 16);  // within 1/16 of what is best
  EXPECT_EQ(source.read_nbytes(), 10'000U);
  window.at(100'000, 16);
  EXPECT_EQ(source.read_nbytes(), 10'125U);
}

TEST(WindowReader, ReadsNeighboursTogether) {
  const FakeSource source("s", some_bytes(200'000));
  WindowReader window(source);
  for (std::uint64_t offset = 0; offset + 16 <= source.nbytes(); offset += 1000) {
    ASSERT_EQ(text_of(window.at(offset, 16)), source.bytes().substr(offset, 16)) << offset;
  }
  EXPECT_EQ(source.reads(), 1U);
}

TEST(WindowReader, ReadsLittleOfWhatLiesFarApart) {
  const FakeSource source("s", some_bytes(10'000'000));
  WindowReader window(source);
  window.at(0, 16);
  source.forget_reads();
  for (std::uint64_t offset = 1'000'000; offset < 10'000'000; offset += 1'000'000) {
    ASSERT_EQ(text_of(window.at(offset, 16)), source.bytes().substr(offset, 16)) << offset;
  }
  EXPECT_EQ(source.reads(), 9U);
  EXPECT_LE(source.read_nbytes(), 9U * 4096);
}

TEST(WindowReader, ReadsBackwards) {
  const FakeSource source("s", some_bytes(1'000'000));
  WindowReader window(source);
  for (std::uint64_t offset : {900'000, 500'000, 499'999, 0, 999'999}) {
    ASSERT_EQ(text_of(window.at(offset, 1)), source.bytes().substr(offset, 1)) << offset;
  }
}

TEST(WindowReader, ReadsMoreThanItsWindow) {
  const FakeSource source("s", some_bytes(1'000'000));
  WindowReader window(source);
  EXPECT_EQ(text_of(window.at(3, 900'000)), source.bytes().substr(3, 900'000));
}

TEST(WindowReader, StopsAtTheEnd) {
  const FakeSource source("s", some_bytes(1000));
  WindowReader window(source);
  EXPECT_EQ(text_of(window.at(990, 10)), source.bytes().substr(990));
  EXPECT_TRUE(window.at(1000, 0).empty());
  EXPECT_EQ(refusal_of([&] { window.at(990, 11); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(refusal_of([&] { window.at(2000, 1); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(text_of(window.at(5, 10)), source.bytes().substr(5, 10)) << "after a failure";
}

// A length out of a hostile header must not be allocated before it is compared with the source.
TEST(WindowReader, AllocatesNothingForWhatIsNotThere) {
  const FakeSource source("s", some_bytes(1000));
  WindowReader window(source);
  EXPECT_EQ(refusal_of([&] { window.at(10, std::size_t{1} << 62); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(text_of(window.at(5, 10)), source.bytes().substr(5, 10));
}

TEST(SourceWatch, RemembersWhatWasReadWithinIt) {
  const FakeSource a("a", "a");
  const FakeSource b("b", "b");
  const FakeSource unread("unread", "u");
  read(unread, 0, 1);
  const SourceWatch watch;
  read(a, 0, 1);
  read(b, 0, 1);
  read(a, 0, 1);
  unread.set_changed();
  watch.check_unchanged();
  b.set_changed();
  const auto refusal = refusal_of([&] { watch.check_unchanged(); });
  EXPECT_EQ(refusal.kind, ErrorKind::kChanged);
  EXPECT_EQ(refusal.text, "b has changed");
}

TEST(SourceWatch, NestsAndTheInnermostRemembers) {
  const FakeSource before("before", "x");
  const FakeSource within("within", "x");
  const FakeSource after("after", "x");
  const SourceWatch outer;
  read(before, 0, 1);
  {
    const SourceWatch inner;
    read(within, 0, 1);
    before.set_changed();
    inner.check_unchanged();
    within.set_changed();
    EXPECT_EQ(refusal_of([&] { inner.check_unchanged(); }).text, "within has changed");
    EXPECT_EQ(refusal_of([&] { outer.check_unchanged(); }).text, "before has changed");
  }
  const SourceWatch second;
  read(after, 0, 1);
  second.check_unchanged();
  after.set_changed();
  EXPECT_EQ(refusal_of([&] { second.check_unchanged(); }).text, "after has changed");
}

TEST(SourceWatch, OuterRemembersAgainOnceTheInnerHasEnded) {
  const FakeSource within("within", "x");
  const FakeSource after("after", "x");
  const SourceWatch outer;
  {
    const SourceWatch inner;
    read(within, 0, 1);
  }
  read(after, 0, 1);
  within.set_changed();
  outer.check_unchanged();
  after.set_changed();
  EXPECT_EQ(refusal_of([&] { outer.check_unchanged(); }).text, "after has changed");
}

}  // namespace
}  // namespace npyfs
