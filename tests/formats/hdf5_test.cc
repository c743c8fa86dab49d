// SPDX-License-Identifier: Apache-2.0
//
// What the child says is not believed, and what it does is survived; indexes of chunks that lead
// astray; filters by worked examples. Whole files are the battery's and the mount tests'.

#include "formats/hdf5/hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/codecs/codecs.h"
#include "formats/hdf5/child_process.h"
#include "formats/hdf5/chunk_index.h"
#include "formats/hdf5/chunk_reader.h"
#include "formats/hdf5/chunk_table.h"
#include "formats/hdf5/description.h"
#include "formats/hdf5/filters.h"
#include "formats/hdf5/linked_files.h"
#include "formats/hdf5/patience.h"
#include "formats/hdf5/read_grids.h"
#include "formats/hdf5/wire.h"
#include "formats/store.h"
#include "tests/support/descriptors.h"
#include "tests/support/fake_table.h"
#include "tests/support/one_chunk_cache.h"

namespace npyfs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal_of;

namespace fs = std::filesystem;

const std::string kName = "a.h5";

WireFrame frame_of(WireFrameWriter& writer) {
  const auto bytes = writer.finish();
  WireFrame frame;
  frame.kind = static_cast<FrameKind>(bytes[kFrameHeadNbytes - 1]);
  frame.bytes.assign(bytes.begin() + kFrameHeadNbytes, bytes.end());
  return frame;
}

std::uint32_t test_seed() {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

// ---- what the child says

WireFrameWriter begin_array(StorageTag tag, const std::string& descr, std::uint32_t itemsize,
                            const Shape& shape, const std::string& fill = "") {
  WireFrameWriter writer(FrameKind::kArray);
  writer.add_text("x").add_text("/x").add_u8(static_cast<std::uint8_t>(tag));
  writer.add_text(descr).add_u32(itemsize).add_shape(shape).add_text(fill);
  writer.add_value(Value{Dict{{"unit", Value{std::string("V")}}}});
  return writer;
}

WireFrameWriter chunked_array(const Shape& shape, const Shape& chunk_shape,
                              std::uint8_t extra_axes) {
  WireFrameWriter writer = begin_array(StorageTag::kChunked, "'<f4'", 4, shape);
  writer.add_shape(chunk_shape).add_u8(extra_axes).add_u8(0).add_u64(0).add_u64(800);
  writer.add_u32(1).add_u32(1).add_text("deflate").add_u32(1).add_u32(4);
  return writer;
}

std::string refusal_of_frame(WireFrameWriter writer) {
  const WireFrame frame = frame_of(writer);
  DescriptionBudget budget;
  DescriptionReader reader(kName, budget);
  const auto refusal = refusal_of([&] { reader.add(frame); });
  EXPECT_EQ(refusal.kind, ErrorKind::kCorrupt) << refusal.text;
  EXPECT_THAT(refusal.text, HasSubstr(kName));
  return refusal.text;
}

TEST(Hdf5Description, SaysWhatWasSaid) {
  DescriptionBudget budget;
  DescriptionReader reader(kName, budget);
  WireFrameWriter group(FrameKind::kGroupBegin);
  group.add_text("").add_value(Value{Dict{{"z", Value{Complex{1, -2}}}}});
  WireFrameWriter array = chunked_array({10, 3}, {4, 3}, 1);
  WireFrameWriter end_of_group(FrameKind::kGroupEnd);
  WireFrameWriter end(FrameKind::kEnd);
  EXPECT_FALSE(reader.add(frame_of(group)));
  EXPECT_FALSE(reader.add(frame_of(array)));
  EXPECT_FALSE(reader.add(frame_of(end_of_group)));
  EXPECT_TRUE(reader.add(frame_of(end)));
  const GroupDescription described = reader.take();
  ASSERT_EQ(described.groups.size(), 1U);
  const GroupDescription& root = described.groups[0];
  EXPECT_EQ(std::get<Complex>(root.attributes.at(0).value.v), (Complex{1, -2}));
  ASSERT_EQ(root.arrays.size(), 1U);
  EXPECT_EQ(root.arrays[0].dtype, DType::simple("<f4"));
  EXPECT_THAT(root.arrays[0].shape, ElementsAre(10, 3));
  const auto& chunked = std::get<ChunkedStorage>(root.arrays[0].storage);
  EXPECT_THAT(chunked.chunk_shape, ElementsAre(4, 3));
  EXPECT_EQ(chunked.header, 800U);
  EXPECT_THAT(chunked.filters.at(0).parameters, ElementsAre(4));
}

TEST(Hdf5Description, RefusesWhatContradictsItself) {
  EXPECT_THAT(refusal_of_frame(begin_array(StorageTag::kAbsent, "'<f4'", 8, {1})),
              HasSubstr("contradicting size"));
  EXPECT_THAT(refusal_of_frame(begin_array(StorageTag::kAbsent, "'<f4'", 4, {1}, "12345")),
              HasSubstr("fill value"));
  EXPECT_THAT(
      refusal_of_frame(begin_array(StorageTag::kAbsent, "'<f8'", 8, {1ULL << 40, 1ULL << 40})),
      HasSubstr("has an array of"));
  EXPECT_THAT(refusal_of_frame(chunked_array({10, 3}, {0, 3}, 0)), HasSubstr("has chunks of"));
  EXPECT_THAT(refusal_of_frame(chunked_array({10, 3}, {3}, 0)), HasSubstr("has chunks of"));
  EXPECT_THAT(refusal_of_frame(chunked_array({10, 3}, {3, 3}, 2)), HasSubstr("without an axis"));
  EXPECT_THAT(refusal_of_frame(WireFrameWriter(FrameKind::kGroupEnd)), HasSubstr("has not begun"));
  EXPECT_THAT(refusal_of_frame(WireFrameWriter(FrameKind::kDescribe)), HasSubstr("no known kind"));
  WireFrameWriter compact = begin_array(StorageTag::kCompact, "'|u1'", 1, {3});
  compact.add_text("ab");
  EXPECT_THAT(refusal_of_frame(compact), HasSubstr("compact"));
  WireFrameWriter text = begin_array(StorageTag::kRead, "'<U3'", 12, {2});
  text.add_u8(static_cast<std::uint8_t>(ReadForm::kText)).add_u32(4).add_shape({2});
  EXPECT_THAT(refusal_of_frame(text), HasSubstr("text of contradicting size"));
  WireFrameWriter sequences = begin_array(StorageTag::kRead, "'<f4'", 4, {5});
  sequences.add_u8(static_cast<std::uint8_t>(ReadForm::kConcat)).add_u32(0).add_shape({5});
  sequences.add_u32(2).add_u64(4).add_u64(3);
  EXPECT_THAT(refusal_of_frame(sequences), HasSubstr("contradicting lengths"));
  WireFrameWriter boxes = begin_array(StorageTag::kVirtual, "'<f4'", 4, {5});
  boxes.add_u32(1).add_text(".").add_text("/y").add_u8(1);
  boxes.add_u64(~0ULL - 2).add_u64(1).add_u64(5).add_u64(1).add_u8(0);
  EXPECT_THAT(refusal_of_frame(boxes), HasSubstr("overflows"));
}

// A type is printed into the preamble of a .npy file: only what numpy would print may get there.
TEST(Hdf5Description, RefusesTypesThatNumpyDoesNotSpell) {
  for (const char* descr : {"'<f4', 'shape': (9,), 'x': '", "'|O'", "object", "[('a', '|O')]", "",
                            "'<f4'}\n", "[('a', '<f4')", "'<q9'"}) {
    const WireFrame frame = [&] {
      WireFrameWriter writer = begin_array(StorageTag::kAbsent, descr, 4, {1});
      return frame_of(writer);
    }();
    DescriptionBudget budget;
    DescriptionReader reader(kName, budget);
    EXPECT_THROW(reader.add(frame), Error) << descr;
  }
}

TEST(Hdf5Description, EndsWhereItSaysItDoes) {
  WireFrameWriter writer = chunked_array({10, 3}, {4, 3}, 0);
  const WireFrame whole = frame_of(writer);
  for (std::size_t n = 0; n < whole.bytes.size(); ++n) {
    DescriptionBudget budget;
    DescriptionReader reader(kName, budget);
    WireFrame cut = whole;
    cut.bytes.resize(n);
    EXPECT_THROW(reader.add(cut), Error) << n;
  }
  WireFrame longer = whole;
  longer.bytes.push_back(std::byte{0});
  DescriptionBudget budget;
  DescriptionReader reader(kName, budget);
  EXPECT_THROW(reader.add(longer), Error);
}

TEST(Hdf5Description, NestsOnlySoDeep) {
  DescriptionBudget budget;
  DescriptionReader reader(kName, budget);
  WireFrameWriter group(FrameKind::kGroupBegin);
  group.add_text("g").add_value(Value{Dict{}});
  const WireFrame frame = frame_of(group);
  for (std::size_t depth = 0; depth < kMostGroupDepth; ++depth) {
    reader.add(frame);
  }
  EXPECT_THAT(refusal_of([&] { reader.add(frame); }).text, HasSubstr("nests deeper"));
  WireFrameWriter attributes(FrameKind::kGroupBegin);
  Value value;
  for (int depth = 0; depth < 100; ++depth) {
    value = Value{List{value}};
  }
  attributes.add_text("g").add_value(value);
  EXPECT_THAT(refusal_of_frame(attributes), HasSubstr("attributes nested deeper"));
}

// All that a file leads to counts: many answers, each within its limits, are too much at last.
TEST(Hdf5Description, TakesOnlySoMuch) {
  WireFrameWriter array = chunked_array({10, 3}, {4, 3}, 0);
  const WireFrame frame = frame_of(array);
  DescriptionBudget budget;
  budget.objects = DescriptionBudget::kMostObjects - 2;
  for (int i = 0; i < 2; ++i) {
    DescriptionReader(kName, budget).add(frame);
  }
  DescriptionReader reader(kName, budget);
  const auto objects = refusal_of([&] { reader.add(frame); });
  EXPECT_EQ(objects.kind, ErrorKind::kTooLarge);
  EXPECT_THAT(objects.text, HasSubstr("a.h5: it holds, or leads to, more than 1000000 objects"));

  // A list of nothing takes a byte in the frame, and much more in memory.
  WireFrameWriter group(FrameKind::kGroupBegin);
  group.add_text("g").add_value(Value{Dict{{"a", Value{List(1000)}}}});
  budget.objects = 0;
  budget.nbytes = DescriptionBudget::kMostNbytes - 1000 * sizeof(Value);
  const auto nbytes = refusal_of([&] { reader.add(frame_of(group)); });
  EXPECT_EQ(nbytes.kind, ErrorKind::kTooLarge);
  EXPECT_THAT(nbytes.text, HasSubstr("more than 1073741824 bytes"));

  WireFrameWriter hostile(FrameKind::kGroupBegin);
  hostile.add_text("g").add_value(Value{List(2 * kMostAttributeValues)});
  EXPECT_THAT(refusal_of_frame(hostile), HasSubstr("attributes of more than 8388608 values"));
}

TEST(Hdf5Description, SurvivesAnyBytes) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  WireFrameWriter writer = chunked_array({10, 3}, {4, 3}, 0);
  const WireFrame whole = frame_of(writer);
  std::size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    WireFrame frame = whole;
    for (std::size_t k = random() % 4; k < 4; ++k) {
      frame.bytes[random() % frame.bytes.size()] = static_cast<std::byte>(random());
    }
    frame.kind = static_cast<FrameKind>(random() % 2 == 0 ? 18 : random() % 30);
    DescriptionBudget budget;
    DescriptionReader reader(kName, budget);
    try {
      reader.add(frame);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0U);
}

// ---- what the child does

class Hdf5Child : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("npyfs-hdf5-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The message that refuses a file on which the child does as `behaviour` says (see
  // tests/support/hdf5_child_main.cc).
  std::string refusal(const std::string& behaviour) const {
    const std::string path = folder_ / "a.h5";
    std::ofstream(path, std::ios::binary) << "\x89HDF\r\n\x1a\n"
                                          << behaviour << std::string(600, '\0');
    Location location;
    location.path = path;
    location.source = FileSource::open(path, path);
    OpenContext context;
    context.warn = [](const std::string&) {};
    const auto refused = refusal_of([&] { kHdf5.open_store(location, context); });
    EXPECT_EQ(refused.kind, ErrorKind::kCorrupt) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr(path));
    return refused.text;
  }

  fs::path folder_;
};

TEST_F(Hdf5Child, MayCrash) { EXPECT_THAT(refusal("(crash)"), HasSubstr("crashed on it")); }

TEST_F(Hdf5Child, MayGoRoundInCircles) {
  EXPECT_THAT(refusal("(loops)"), HasSubstr("did not come to an end"));
}

TEST_F(Hdf5Child, MayTalkNonsense) {
  EXPECT_THAT(refusal("(large)"), HasSubstr("4294967295 bytes"));
  EXPECT_THAT(refusal("(chaos)"), HasSubstr("damaged or crafted"));
  EXPECT_THAT(refusal("(halfs)"), HasSubstr("gave up on it"));
}

TEST_F(Hdf5Child, TellsWhatTheLibraryHasAgainstIt) {
  EXPECT_THAT(refusal("nothing"), HasSubstr("the HDF5 library cannot open it: "));
}

TEST_F(Hdf5Child, IsNotRunUnconfined) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_THAT(refusal("(denied)"), HasSubstr("does not let it be confined: Permission denied"));
#endif
}

// `time` is when it ends, or what it may take.
template <typename Time>
GroupDescription describe(const Hdf5Process& process, Time time) {
  WireFrameWriter request(FrameKind::kDescribe);
  request.add_text("/");
  DescriptionBudget budget;
  DescriptionReader reader(process.source()->name(), budget);
  process.ask(request, time, [&](const WireFrame& frame) { return reader.add(frame); });
  return reader.take();
}

// Time runs out where storage stalls, too: the file is not damaged for that, and asked again later.
TEST_F(Hdf5Child, MayBeLateOnce) {
  const std::string path = fs::path(NPYFS_TEST_DATA) / "hdf5/das_contig.h5";
  const Hdf5Process process(FileSource::open(path, path));
  const auto now = Hdf5Process::Clock::now();
  const auto late = refusal_of([&] { describe(process, now); });
  EXPECT_EQ(late.kind, ErrorKind::kIo) << late.text;
  EXPECT_THAT(late.text, HasSubstr("has not answered in time"));
  EXPECT_EQ(describe(process, now + std::chrono::minutes(5)).groups.size(), 1U);
}

// A clock that stands still but for what it is told, and for `step` each time it is looked at.
class TestClock {
 public:
  explicit TestClock(std::chrono::seconds step = std::chrono::seconds(0)) : step_(step.count()) {}
  Patience patience() {
    Patience patience;
    patience.now = [this] {
      return Patience::Clock::time_point(std::chrono::seconds(seconds_ += step_));
    };
    return patience;
  }
  void advance(std::chrono::seconds by) { seconds_ += by.count(); }

 private:
  std::int64_t step_;
  std::atomic<std::int64_t> seconds_ = 1'000'000;
};

// However long others take before it.
TEST_F(Hdf5Child, HasItsTimeForItself) {
  const std::string path = fs::path(NPYFS_TEST_DATA) / "hdf5/das_contig.h5";
  TestClock clock;
  const Hdf5Process process(FileSource::open(path, path), clock.patience());
  std::future<GroupDescription> second;
  WireFrameWriter first(FrameKind::kDescribe);
  first.add_text("/");
  process.ask(first, std::chrono::hours(24), [&](const WireFrame& frame) {
    if (!second.valid()) {
      std::promise<void> begun;
      second = std::async(std::launch::async, [&] {
        begun.set_value();
        return describe(process, std::chrono::hours(1));
      });
      begun.get_future().wait();
      // Were its time to begin before its turn, this is when it would; nothing else waits for it.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      clock.advance(std::chrono::hours(2));
    }
    return frame.kind == FrameKind::kEnd;
  });
  EXPECT_EQ(second.get().groups.size(), 1U);
}

TEST_F(Hdf5Child, IsWaitedForOnlySoLong) {
  const auto refusal_of_read = [&](const std::string& behaviour, const Patience& patience) {
    const std::string path = folder_ / "a.h5";
    std::ofstream(path, std::ios::binary) << "\x89HDF\r\n\x1a\n" << behaviour;
    const Hdf5Process process(FileSource::open(path, path), patience);
    std::vector<std::byte> out(8);
    const auto refused =
        refusal_of([&] { process.read("/x", ReadForm::kPlain, 0, {0}, {1}, 0, out); });
    EXPECT_EQ(refused.kind, ErrorKind::kIo) << refused.text;
    EXPECT_EQ(refused.text,
              path +
                  ": the HDF5 library has not answered in time; what it waits for may be slow "
                  "storage: read again once that answers");
  };
  // It never says anything.
  Patience short_silence;
  short_silence.silence = std::chrono::milliseconds(20);
  refusal_of_read("(mutes)", short_silence);
  // It always says something: five minutes for a block.
  TestClock clock(std::chrono::seconds(10));
  refusal_of_read("(drips)", clock.patience());
}

// A file, and all that it links to.
TEST_F(Hdf5Child, MayTakeOnlySoLongToDescribeAFile) {
  const std::string path = fs::path(NPYFS_TEST_DATA) / "hdf5/layouts.h5";
  OpenContext context;
  context.warn = [](const std::string&) {};
  TestClock clock(std::chrono::seconds(60));
  const auto late =
      refusal_of([&] { open_hdf5(FileSource::open(path, path), path, context, clock.patience()); });
  EXPECT_EQ(late.kind, ErrorKind::kIo) << late.text;
  EXPECT_THAT(late.text, HasSubstr("has not answered in time"));
}

// One file's answer just fits; that of the next one it links to is too much.
TEST_F(Hdf5Child, MaySayOnlySoMuchInAll) {
  const std::string path = fs::path(NPYFS_TEST_DATA) / "hdf5/layouts.h5";
  const SourcePtr source = FileSource::open(path, path);
  const Hdf5Process process(source);
  WireFrameWriter request(FrameKind::kDescribe);
  request.add_text("/");
  DescriptionBudget own;
  DescriptionReader reader(path, own);
  process.ask(request, std::chrono::minutes(5),
              [&](const WireFrame& frame) { return reader.add(frame); });
  OpenContext context;
  context.warn = [](const std::string&) {};
  DescriptionBudget used;
  used.nbytes = DescriptionBudget::kMostNbytes - own.nbytes;
  const auto refused = refusal_of([&] { open_hdf5(source, path, context, {}, used); });
  EXPECT_EQ(refused.kind, ErrorKind::kTooLarge) << refused.text;
  EXPECT_THAT(refused.text,
              HasSubstr("ext_target.h5: attributes and names of all that it holds, or "
                        "leads to, take more than 1073741824 bytes, expected less"));
}

// No file is damaged for want of descriptors.
TEST_F(Hdf5Child, IsNotStartedWithoutDescriptors) {
  const std::string path = fs::path(NPYFS_TEST_DATA) / "hdf5/das_contig.h5";
  const Hdf5Process process(FileSource::open(path, path));
  const auto soon = Hdf5Process::Clock::now() + std::chrono::minutes(5);
  // The copies for the child are 16 and above: room for none of them, and for one.
  for (const rlim_t most : {16, 17}) {
    const testing::FileLimit limit(most);
    const auto refused = refusal_of([&] { describe(process, soon); });
    EXPECT_EQ(refused.kind, ErrorKind::kIo) << refused.text;
    EXPECT_THAT(refused.text, HasSubstr("cannot start the reader of"));
  }
  EXPECT_EQ(describe(process, soon).groups.size(), 1U);
}

// The path may lead to another file by the time the child is started.
TEST_F(Hdf5Child, ReadsTheVeryFileThatWasOpened) {
  const fs::path golden = fs::path(NPYFS_TEST_DATA) / "hdf5";
  const std::string path = folder_ / "a.h5";
  fs::copy_file(golden / "das_contig.h5", path);
  const Hdf5Process process(FileSource::open(path, path));
  fs::rename(path, folder_ / "b.h5");
  fs::copy_file(golden / "userblock.h5", path);
  struct stat status {};
  const int fd = process.source()->open_again();
  ASSERT_EQ(::fstat(fd, &status), 0);
  ::close(fd);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), fs::file_size(folder_ / "b.h5"));
  testing::close_all_idle();
  EXPECT_EQ(refusal_of([&] { process.source()->open_again(); }).kind, ErrorKind::kChanged);
}

TEST_F(Hdf5Child, OpensNoFileThatALinkNames) {
  // (external links of the golden files lead to /etc/passwd and to ..)
  const std::string path = std::string(NPYFS_TEST_DATA) + "/hdf5/expected/_sources/outside.h5";
  Location location;
  location.path = path;
  location.source = FileSource::open(path, path);
  std::vector<std::string> warnings;
  OpenContext context;
  context.warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto store = kHdf5.open_store(location, context);
  for (const StoredArray& array : store->root.arrays) {
    EXPECT_EQ(array.name, "ok");
  }
  EXPECT_THAT(warnings, ::testing::Contains(HasSubstr("below the file's own folder")));
}

// ---- arrays that are made of others

// Ten bytes in as many chunks, each its number.
class Digits : public DecodedGrid {
 public:
  Digits() : DecodedGrid({DType::simple("|u1"), {10}, {1}, true}, {}, "digits") {}
  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    out[0] = static_cast<std::byte>(chunk);
  }
};

// All of another array of ten bytes.
std::shared_ptr<const ChunkGrid> virtual_of(std::shared_ptr<const ChunkGrid> grid,
                                            ChunkCache& cache, const Patience& patience) {
  ArrayDescription array;
  array.path = "/v";
  array.dtype = grid->dtype();
  array.shape = grid->shape();
  const auto all = VirtualStorage::whole(array.shape);
  return make_virtual_grid(array, {{std::move(grid), {}, all, all}}, cache, patience);
}

TEST(Hdf5Virtual, IsPutTogetherWithinItsTime) {
  const auto read = [](const std::shared_ptr<const ChunkGrid>& grid) {
    return testing::OneChunkCache().get(*grid, 0)->bytes;
  };
  const std::string late =
      "a block of a virtual array takes more than 120 s to be put together out of other chunks; "
      "storage is slow, or the file crafted";
  for (const int depth : {1, 2}) {
    // The clock is looked at before each chunk, and where a block begins.
    TestClock fast(std::chrono::seconds(10));
    // Of two, slow enough for the outer one alone, whose time counts.
    TestClock slow(std::chrono::seconds(depth == 1 ? 13 : 12));
    testing::OneChunkCache cache;
    for (TestClock* clock : {&fast, &slow}) {
      std::shared_ptr<const ChunkGrid> grid = std::make_shared<Digits>();
      for (int i = 0; i < depth; ++i) {
        grid = virtual_of(std::move(grid), cache, clock->patience());
      }
      if (clock == &fast) {
        EXPECT_EQ(read(grid)[9], std::byte{9});
        continue;
      }
      const auto refused = refusal_of([&] { read(grid); });
      EXPECT_EQ(refused.kind, ErrorKind::kIo);
      EXPECT_EQ(refused.text, late);
      // The next block has its own time.
      EXPECT_EQ(read(virtual_of(std::make_shared<Digits>(), cache, fast.patience()))[9],
                std::byte{9});
    }
  }
}

// ---- indexes

// 4096 bytes that begin with an object header of version 1, to be filled in.
class HeaderFile {
 public:
  HeaderFile(unsigned messages, unsigned nbytes) : bytes_(4096) {
    put(0, 1, 1);  // version
    put(2, 2, messages);
    put(8, 4, nbytes);  // of the messages
  }

  void put(std::size_t at, std::size_t width, std::uint64_t number) {
    std::memcpy(bytes_.data() + at, &number, width);
  }

  // Of ten chunks of ten numbers of four bytes: the grid, and what was warned of.
  std::shared_ptr<const ChunkGrid> open(bool filtered, std::string& warning) const {
    ArrayDescription array;
    array.path = "/x";
    array.dtype = DType::simple("<f4");
    array.shape = {100};
    ChunkedStorage storage;
    storage.chunk_shape = {10};
    if (filtered) {
      storage.filters.push_back({60123, "what", {}});
    }
    const Hdf5Process process(std::make_shared<MemorySource>("a.h5", bytes_));
    const auto soon = Hdf5Process::Clock::now() + std::chrono::seconds(60);
    return make_chunk_reader(array, storage, process, soon,
                             [&](const std::string& text) { warning += text; });
  }

 protected:
  static constexpr unsigned kDataspace = 1;
  static constexpr unsigned kLayout = 8;

  // The head of a message.
  void put_message(std::size_t at, unsigned type) {
    put(at, 2, type);
    put(at + 2, 2, 24);  // its size
  }

  std::vector<std::byte> bytes_;
};

// A version 1 header with a chunked layout, at byte 0; a B-tree follows at 256.
class TreeFile : public HeaderFile {
 public:
  TreeFile() : HeaderFile(1, 40) {
    put_message(16, kLayout);
    put(24, 1, 3);      // version
    put(25, 1, 2);      // chunked
    put(26, 1, 2);      // rank 1, and the element
    put(27, 8, kTree);  // its index
    put(35, 4, 10);     // rows
    put(39, 4, 4);      // bytes of an element
  }

  static constexpr std::uint64_t kTree = 256;

  void put_node(std::uint64_t at, unsigned level, unsigned used) {
    std::memcpy(bytes_.data() + at, "TREE", 4);
    put(at + 4, 1, 1);
    put(at + 5, 1, level);
    put(at + 6, 2, used);
  }
  // The i-th entry of the node at `at`.
  void put_entry(std::uint64_t at, unsigned i, std::uint32_t nbytes, std::uint64_t offset,
                 std::uint64_t child) {
    const std::uint64_t entry = at + 24 + i * 32;
    put(entry, 4, nbytes);
    put(entry + 8, 8, offset);
    put(entry + 24, 8, child);
  }

  std::vector<std::uint64_t> places() const {
    const MemorySource source("a.h5", bytes_);
    std::vector<std::uint64_t> places;
    read_chunk_index(source, {0, {}, 0, {100}, {10}, 40, true},
                     [&](std::span<const std::uint64_t> place, const StoredChunk& chunk) {
                       places.push_back(place[0]);
                       EXPECT_EQ(chunk.nbytes, 33U);
                     });
    return places;
  }
  std::string refusal() const {
    const auto refused = refusal_of([&] { places(); });
    EXPECT_EQ(refused.kind, ErrorKind::kCorrupt) << refused.text;
    return refused.text;
  }
};

TEST(Hdf5Index, IsReadLevelByLevel) {
  TreeFile file;
  file.put_node(TreeFile::kTree, 1, 2);
  file.put_entry(TreeFile::kTree, 0, 0, 0, 1000);
  file.put_entry(TreeFile::kTree, 1, 0, 20, 2000);
  file.put_node(1000, 0, 2);
  file.put_entry(1000, 0, 33, 0, 100);
  file.put_entry(1000, 1, 33, 10, 200);
  file.put_node(2000, 0, 1);
  file.put_entry(2000, 0, 33, 90, 300);
  EXPECT_THAT(file.places(), ElementsAre(0, 1, 9));
}

TEST(Hdf5Index, ThatLeadsAstrayIsRefused) {
  TreeFile round;
  round.put_node(TreeFile::kTree, 1, 1);
  round.put_entry(TreeFile::kTree, 0, 0, 0, TreeFile::kTree);
  EXPECT_THAT(round.refusal(), HasSubstr("level 1, expected 0"));

  TreeFile crooked;
  crooked.put_node(TreeFile::kTree, 0, 1);
  crooked.put_entry(TreeFile::kTree, 0, 33, 7, 100);
  EXPECT_THAT(crooked.refusal(), HasSubstr("a multiple of 10"));

  TreeFile outside;
  outside.put_node(TreeFile::kTree, 1, 1);
  outside.put_entry(TreeFile::kTree, 0, 0, 0, 1 << 20);
  EXPECT_NE(outside.refusal(), "");

  TreeFile too_full;
  too_full.put_node(TreeFile::kTree, 0, 60'000);
  EXPECT_NE(too_full.refusal(), "");

  EXPECT_THAT(TreeFile().refusal(), HasSubstr("no node of a chunk index"));
}

// They are in order, so that no other sign tells of a key that a flipped bit has moved.
TEST(Hdf5Index, ThatNamesChunksOutsideTheArraySaysSo) {
  TreeFile file;
  file.put_node(TreeFile::kTree, 0, 3);
  file.put_entry(TreeFile::kTree, 0, 40, 0, 1000);
  file.put_entry(TreeFile::kTree, 1, 40, 90, 2000);
  file.put_entry(TreeFile::kTree, 2, 40, 100, 3000);
  std::string warning;
  const auto grid = file.open(false, warning);
  EXPECT_EQ(warning,
            "a.h5: the index of /x names a chunk at (10,) in a grid of (10,), outside its shape "
            "(100,); chunks that it does not name cannot be read: the file is damaged, copy it "
            "again, or, where a writer has it open, mount it again");
  EXPECT_EQ(grid->locate(9).kind, ChunkPlace::Kind::kMapped);
  EXPECT_EQ(grid->locate(5).kind, ChunkPlace::Kind::kDamaged);
  EXPECT_THAT(grid->locate(5).damage->error.what(),
              HasSubstr("outside its shape (100,); a chunk that the index does not name may be"));
  warning.clear();
  file.put_entry(TreeFile::kTree, 1, 40, 10 * (std::uint64_t{1} << 40), 2000);
  file.put_entry(TreeFile::kTree, 2, 40, 10 * (std::uint64_t{1} << 41), 3000);
  EXPECT_EQ(file.open(false, warning)->locate(9).kind, ChunkPlace::Kind::kDamaged);
  EXPECT_THAT(warning, HasSubstr("names 2 chunks, the first of them at (1099511627776,) in a grid "
                                 "of (10,), outside its shape (100,)"));
}

// Nodes that share their children would be read again and again.
TEST(Hdf5Index, ReadsNoMoreThanTwiceTheFile) {
  TreeFile file;
  for (unsigned level = 6; level > 0; --level) {
    const std::uint64_t at = TreeFile::kTree + (6 - level) * 512;
    file.put_node(at, level, 12);
    for (unsigned i = 0; i < 12; ++i) {
      file.put_entry(at, i, 0, 0, at + 512);
    }
  }
  file.put_node(TreeFile::kTree + 6 * 512, 0, 0);
  EXPECT_THAT(file.refusal(), HasSubstr("in a circle"));
}

// Ten chunks of ten numbers of four bytes, by an implicit index: a version 1 header at byte 0 of a
// file of 4096 bytes.
class RowFile : public HeaderFile {
 public:
  explicit RowFile(std::uint64_t address) : HeaderFile(2, 64) {
    put_message(16, kDataspace);
    put(24, 1, 1);  // version
    put(25, 1, 1);  // rank
    put(26, 1, 1);  // may grow
    put(32, 8, 100);
    put(kMost, 8, 100);
    put_message(48, kLayout);
    put(56, 1, 4);        // version
    put(57, 1, 2);        // chunked
    put(59, 1, 2);        // rank 1, and the element
    put(60, 1, 4);        // bytes of a length
    put(61, 4, 10);       // numbers
    put(65, 4, 4);        // bytes of a number
    put(69, 1, 2);        // implicit
    put(70, 8, address);  // of the first chunk
  }

  static constexpr std::size_t kMost = 40;

  // The warning of a file all of whose chunks are damaged.
  std::string refusal(bool filtered = false) const {
    std::string warning;
    const auto grid = open(filtered, warning);
    for (std::uint64_t chunk = 0; chunk < grid->chunk_count(); ++chunk) {
      const ChunkPlace place = grid->locate(chunk);
      EXPECT_EQ(place.kind, ChunkPlace::Kind::kDamaged) << chunk;
      EXPECT_NE(place.damage, nullptr) << chunk;
    }
    return warning;
  }
};

TEST(Hdf5Index, OfARowWithoutAnEndIsRefused) {
  // The last of its chunks would lie at the head of the file again.
  EXPECT_THAT(RowFile(~0ULL - 255).refusal(), HasSubstr("have no end"));
  // Whether a chunk is filtered, and how long it is then, such an index cannot tell.
  EXPECT_THAT(RowFile(1000).refusal(true), HasSubstr("does not tell their sizes"));
  RowFile short_row(1000);
  short_row.put(RowFile::kMost, 8, 10);
  EXPECT_THAT(short_row.refusal(), HasSubstr("axis 0 has 100 elements, expected at most 10"));
}

// Only the line of the last one says where it is.
TEST(Hdf5Index, OfARowThatIsCutNamesNoOtherChunk) {
  std::string warning;
  const auto grid = RowFile(3900).open(false, warning);
  EXPECT_THAT(warning, HasSubstr("a.h5 at byte 4260: the chunk of /x from element (90,) on: it has "
                                 "40 bytes, but the file ends at byte 4096"));
  for (std::uint64_t chunk = 0; chunk < 10; ++chunk) {
    const ChunkPlace place = grid->locate(chunk);
    if (chunk < 4) {
      ASSERT_EQ(place.kind, ChunkPlace::Kind::kMapped) << chunk;
      EXPECT_EQ(place.extent.offset, 3900 + 40 * chunk);
      continue;
    }
    ASSERT_EQ(place.kind, ChunkPlace::Kind::kDamaged) << chunk;
    EXPECT_STREQ(place.damage->error.what(),
                 chunk == 9 ? warning.c_str()
                            : "a.h5: a chunk of /x is damaged: it has 40 bytes, but the file ends "
                              "at byte 4096");
  }
}

TEST(Hdf5Index, TableFindsChunks) {
  ChunkTable table;
  for (const std::uint64_t chunk : {7, 3, 1'000'000}) {
    table.add(chunk, {chunk * 10, 5, 0});
  }
  ASSERT_TRUE(table.sort());
  EXPECT_EQ(table.find(3)->address, 30U);
  EXPECT_EQ(table.find(1'000'000)->address, 10'000'000U);
  EXPECT_FALSE(table.find(4));
  EXPECT_FALSE(table.find(1'000'001));
  table.add(7, {});
  EXPECT_FALSE(table.sort());
}

// ---- filters

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) {
    bytes.push_back(static_cast<std::byte>(number));
  }
  return bytes;
}

std::vector<std::byte> decoded(const CodecPtr& codec, const std::vector<std::byte>& stored,
                               std::size_t nbytes) {
  std::vector<std::byte> out(nbytes);
  EXPECT_EQ(codec->decode(stored, out), nbytes);
  return out;
}

TEST(Hdf5Filters, Lzf) {
  const CodecPtr lzf = make_lzf();
  // Two bytes as they are, then seven from two before: "ab" and "abababa".
  EXPECT_EQ(decoded(lzf, bytes_of({1, 'a', 'b', 0xa0, 1}), 9),
            bytes_of({'a', 'b', 'a', 'b', 'a', 'b', 'a', 'b', 'a'}));
  // One byte, then 9 + 3 more of it.
  EXPECT_EQ(decoded(lzf, bytes_of({0, 'z', 0xe0, 3, 0}), 13), std::vector(13, std::byte{'z'}));
  std::vector<std::byte> out(8);
  EXPECT_FALSE(lzf->decode(bytes_of({1, 'a', 'b', 0xa0, 1}), out).has_value());
  for (const auto& bad : {bytes_of({5, 'a'}), bytes_of({0, 'a', 0x20}), bytes_of({0, 'a', 0xe0, 1}),
                          bytes_of({0, 'a', 0x20, 1}), bytes_of({0x20, 0})}) {
    EXPECT_EQ(refusal_of([&] { lzf->decode(bad, out); }).kind, ErrorKind::kCorrupt);
  }
}

TEST(Hdf5Filters, SurviveAnyBytes) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<CodecPtr> codecs;
  codecs.push_back(make_lzf());
  codecs.push_back(make_hdf5_lz4());
  codecs.push_back(make_bitshuffle(4, 0, BitshuffleInner::kLz4));
  codecs.push_back(make_bitshuffle(2, 0, BitshuffleInner::kZstd));
  codecs.push_back(make_szip({141, 8, 16, 64}));
  codecs.push_back(make_szip({4, 16, 32, 256}));
  std::size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> stored(random() % 64);
    for (std::byte& byte : stored) {
      byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    }
    std::vector<std::byte> out(random() % 300);
    try {
      const auto made = codecs[random() % codecs.size()]->decode(stored, out);
      EXPECT_LE(made.value_or(0), out.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0U);
}

TEST(Hdf5Filters, UnknownOnesAreNamed) {
  const FilterChain chain = make_filter_chain({{2, "shuffle", {4}}, {60123, "what", {}}});
  EXPECT_EQ(chain.unknown, 2U);
  EXPECT_EQ(chain.unknown_names, "60123 (what)");
  EXPECT_EQ(make_filter_chain({{4, "szip", {0, 0, 0, 0}}}).unknown, 1U);
}

}  // namespace
}  // namespace npyfs
