// SPDX-License-Identifier: Apache-2.0
//
// More files than the process may have open: which are closed, what a closed one must still be, and
// readers that do not notice.

#include "formats/bytes/descriptor_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <random>
#include <thread>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "formats/bytes/storage.h"
#include "tests/formats/records.h"
#include "tests/support/descriptors.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

namespace fs = std::filesystem;
using testing::close_all_idle;
using testing::count_open;
using testing::FileLimit;
using testing::refusal_of;
using ::testing::Test;
using testing::write_file;

std::string read(const ByteSource& source) {
  std::string bytes(source.nbytes(), '?');
  source.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void set_mtime(const std::string& path, std::time_t seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 123'456'789}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

class DescriptorPoolTest : public Test {
 protected:
  DescriptorPoolTest() { close_all_idle(); }

  // Each file has its own bytes.
  static std::string bytes_of(std::size_t file) { return "file " + std::to_string(file); }
  std::string path_of(std::size_t file) const { return folder_ / std::to_string(file); }
  std::vector<SourcePtr> open_files(std::size_t count) const {
    std::vector<SourcePtr> sources;
    for (std::size_t file = 0; file < count; ++file) {
      write_file(path_of(file), bytes_of(file));
      sources.push_back(FileSource::open(path_of(file), path_of(file)));
    }
    return sources;
  }
  std::size_t count() const { return count_open(folder_ / ""); }
  bool is_open(std::size_t file) const { return count_open(path_of(file)) > 0; }

  testing::TemporaryFolder folder_;
};

TEST_F(DescriptorPoolTest, MayHaveMostOfWhatTheProcessMay) {
  const auto most_of = [](rlim_t limit) {
    const FileLimit set(limit);
    return most_pooled_descriptors();
  };
  EXPECT_EQ(most_of(0), 0U);
  EXPECT_EQ(most_of(20), 0U);
  EXPECT_EQ(most_of(64), 32U);
  EXPECT_EQ(most_of(128), 96U);
  EXPECT_EQ(most_of(1000), 750U);
}

TEST_F(DescriptorPoolTest, KeepsAllWhereThatIsAllowed) {
  const auto sources = open_files(100);
  EXPECT_EQ(count(), 100U);
  for (const SourcePtr& source : sources) {
    read(*source);
  }
  EXPECT_EQ(count(), 100U);
}

TEST_F(DescriptorPoolTest, ClosesWhatIsNoLongerASource) {
  auto sources = open_files(10);
  sources.resize(4);
  EXPECT_EQ(count(), 4U);
  close_all_idle();
  EXPECT_EQ(count(), 0U);
  read(*sources[2]);
  sources.clear();
  EXPECT_EQ(count(), 0U);
  EXPECT_FALSE(close_idle_descriptor());
}

TEST_F(DescriptorPoolTest, ReadsMoreFilesThanMayBeOpen) {
  const FileLimit limit(64);
  const auto sources = open_files(300);
  EXPECT_EQ(count(), 32U);
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t file = random() % sources.size();
    ASSERT_EQ(read(*sources[file]), bytes_of(file));
    ASSERT_LE(count(), 32U);
  }
}

TEST_F(DescriptorPoolTest, ClosesTheLeastRecentlyUsed) {
  const auto sources = open_files(100);
  close_all_idle();
  const FileLimit limit(64);
  for (std::size_t file = 0; file < 32; ++file) {
    read(*sources[file]);
  }
  // The first one to be closed clears the marks of all; from then on only 0 to 9 are used again.
  for (std::size_t file = 32; file < 50; ++file) {
    read(*sources[file]);
    for (std::size_t used = 0; used < 10; ++used) {
      read(*sources[used]);
    }
  }
  EXPECT_EQ(count(), 32U);
  std::size_t left = 0;
  for (std::size_t file = 1; file < 10; ++file) {
    left += is_open(file) ? 1 : 0;
  }
  EXPECT_EQ(left, 9U);
}

TEST_F(DescriptorPoolTest, FollowsTheLimit) {
  const auto sources = open_files(100);
  const FileLimit limit(64);
  close_all_idle();
  for (const SourcePtr& source : sources) {
    read(*source);
  }
  EXPECT_EQ(count(), 32U);
}

TEST_F(DescriptorPoolTest, GivesWayToOthers) {
  const auto sources = open_files(100);
  std::vector<int> others;
  {
    const FileLimit limit(static_cast<rlim_t>(count_open("")) + 10);
    const auto open_other = [] { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); };
    for (int i = 0; i < 60; ++i) {
      others.push_back(open_descriptor(open_other));
    }
    // What is in use stays: all that there is.
    const auto again = FileSource::open(path_of(7), "again");
    EXPECT_EQ(read(*again), bytes_of(7));
  }
  EXPECT_EQ(std::count(others.begin(), others.end(), -1), 0);
  EXPECT_LT(count(), 60U);
  for (const int fd : others) {
    ::close(fd);
  }
  for (std::size_t file = 0; file < sources.size(); ++file) {
    EXPECT_EQ(read(*sources[file]), bytes_of(file));
  }
}

TEST_F(DescriptorPoolTest, SaysWhatToDoWhereNothingCanBeClosed) {
  const auto sources = open_files(1);
  close_all_idle();
  testing::Refusal refused;
  {
    const FileLimit limit(0);
    refused = refusal_of([&] { read(*sources[0]); });
  }
  EXPECT_EQ(refused.kind, ErrorKind::kIo);
  EXPECT_NE(refused.text.find("raise the limit"), std::string::npos) << refused.text;
  EXPECT_FALSE(sources[0]->changed());
  EXPECT_EQ(read(*sources[0]), bytes_of(0));
}

TEST_F(DescriptorPoolTest, OpensADescriptorForOthersFromAClosedOne) {
  const auto sources = open_files(1);
  close_all_idle();
  const int fd = sources[0]->open_again();
  close_all_idle();
  std::string bytes(bytes_of(0).size(), '?');
  EXPECT_EQ(::read(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(bytes, bytes_of(0));
  ::close(fd);
}

// A file that is closed while others are read.
class ClosedFileTest : public DescriptorPoolTest {
 protected:
  ClosedFileTest() {
    write_file(path_, "0123456789");
    set_mtime(path_, 1'000'000);
    source_ = FileSource::open(path_, "the name");
    close_all_idle();
  }
  // What a read ends with.
  testing::Refusal fault() const {
    return refusal_of([&] { read(*source_); });
  }
  void expect_changed() const {
    EXPECT_EQ(fault().kind, ErrorKind::kChanged);
    EXPECT_TRUE(source_->changed());
    EXPECT_EQ(refusal_of([&] { source_->check_unchanged(); }).kind, ErrorKind::kChanged);
  }
  std::uint64_t inode() const {
    struct stat status {};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return status.st_ino;
  }

  const std::string path_ = folder_ / "data";
  std::shared_ptr<FileSource> source_;
};

TEST_F(ClosedFileTest, IsReadOn) {
  EXPECT_EQ(read(*source_), "0123456789");
  source_->check_unchanged();
}

TEST_F(ClosedFileTest, HasChangedWhereItIsGone) {
  fs::remove(path_);
  const auto refused = fault();
  EXPECT_EQ(refused.kind, ErrorKind::kChanged);
  EXPECT_NE(refused.text.find("the name"), std::string::npos) << refused.text;
  EXPECT_TRUE(source_->changed());
}

TEST_F(ClosedFileTest, HasChangedWhereItIsNoFileAnyMore) {
  fs::remove(path_);
  fs::create_directory(path_);
  expect_changed();
}

// To open it would wait for a writer.
TEST_F(ClosedFileTest, HasChangedWhereItIsAPipe) {
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_changed();
}

TEST_F(ClosedFileTest, HasChangedWhereItWasReplaced) {
  write_file(folder_ / "other", "9876543210");
  set_mtime(folder_ / "other", 1'000'000);
  fs::rename(folder_ / "other", path_);
  expect_changed();
}

TEST_F(ClosedFileTest, HasChangedWhereItWasWrittenTo) {
  std::ofstream(path_, std::ios::app) << "more";
  expect_changed();
}

TEST_F(ClosedFileTest, MayBeMovedAwayAndBack) {
  fs::rename(path_, folder_ / "aside");
  fs::rename(folder_ / "aside", path_);
  EXPECT_EQ(read(*source_), "0123456789");
}

TEST_F(ClosedFileTest, HasChangedWhereAnotherGotItsInodeNumber) {
  const std::uint64_t number = inode();
  open_storage("")->take_time();  // no two files are of one moment, as the kernel counts
  bool is_same = false;
  for (int i = 0; i < 100 && !is_same; ++i) {
    fs::remove(path_);
    write_file(path_, "9876543210");
    is_same = inode() == number;
  }
  if (!is_same) {
    GTEST_SKIP() << "this file system does not give inode numbers again soon";
  }
  set_mtime(path_, 1'000'000);
  expect_changed();
}

// What is read in many threads, opened, closed and let go of meanwhile.
TEST_F(DescriptorPoolTest, IsSharedByThreads) {
  constexpr std::size_t kFiles = 150;
  constexpr int kReaders = 6;
  constexpr int kReads = 3000;
  const FileLimit limit(64);
  const auto sources = open_files(kFiles);
  std::atomic<int> wrong{0};
  std::atomic<int> reading{kReaders};
  std::vector<std::thread> threads;
  for (int reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&, reader] {
      std::mt19937 random(static_cast<std::uint32_t>(reader));
      for (int i = 0; i < kReads; ++i) {
        // Half of the reads are of a few files, which many threads have open at once.
        const std::size_t file = random() % (i % 2 == 0 ? 4 : kFiles);
        try {
          wrong += read(*sources[file]) == bytes_of(file) ? 0 : 1;
          if (i % 16 == 0) {
            wrong += read(*FileSource::open(path_of(file), "own")) == bytes_of(file) ? 0 : 1;
          }
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
          ++wrong;
        }
      }
      --reading;
    });
  }
  threads.emplace_back([&] {
    while (reading > 0) {
      close_idle_descriptor();
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(count(), 32U + kReaders);
  EXPECT_FALSE(sources[0]->changed());
}

}  // namespace
}  // namespace npyfs
