// SPDX-License-Identifier: Apache-2.0
//
// What every format must stand, on the files of its reference implementation.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "formats/registry.h"
#include "tests/battery/golden_cases.h"
#include "tests/support/faulty_pread.h"

namespace npyfs::testing {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kAmpleCache = 64 << 20;
constexpr std::uint64_t kTinyCache = 16 << 10;

std::uint32_t test_seed() {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device()();
}

std::string expected_bytes(const GoldenCase& golden, const std::string& path) {
  return read_whole_file(golden.expected + "/" + path);
}

// None for a split of a store.
std::vector<SourcePtr> sources_of(const Split& split) {
  return split.records != nullptr ? split.records->sources() : std::vector<SourcePtr>();
}

class Battery : public ::testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override { fs::current_path(GetParam().folder); }
  void TearDown() override { set_fault(Fault::kNone, 1); }

  static OpenDataset open(std::uint64_t cache_nbytes) {
    return {GetParam().arguments, cache_nbytes};
  }

  // Every array of the case, each with the bytes that its file must have. Where these need not be
  // the golden ones they are at least always the same.
  static std::vector<std::pair<const NpyFile*, std::string>> with_expected(
      const OpenDataset& dataset) {
    std::vector<std::pair<const NpyFile*, std::string>> all;
    for (const OpenDataset::File& file : dataset.files()) {
      if (GetParam().inexact.count(file.path) != 0) {
        all.emplace_back(file.npy.get(), dataset.read(*file.npy, 0, file.npy->nbytes()));
      } else if (fs::exists(GetParam().expected + "/" + file.path)) {
        all.emplace_back(file.npy.get(), expected_bytes(GetParam(), file.path));
      }
    }
    EXPECT_FALSE(all.empty());
    return all;
  }

  static std::uint64_t nbytes_of_sources(const OpenDataset& dataset) {
    std::uint64_t sum = 0;
    for (const Split& split : dataset.dataset().splits) {
      for (const SourcePtr& source : sources_of(split)) {
        sum += source->nbytes();
      }
    }
    for_each_array(dataset.dataset(), [&](const std::string& /*path*/, const NamedArray& array) {
      for (const SourcePtr& source : array.sources) {
        sum += source->nbytes();
      }
    });
    return sum;
  }

  static std::pair<std::uint64_t, std::uint64_t> random_slice(std::mt19937& random,
                                                              std::size_t size) {
    const std::uint64_t offset = random() % (size + 1);
    // Mostly short, sometimes all there is, sometimes beyond the end.
    const std::uint64_t most = random() % 4 == 0 ? size + 10 : 700;
    return {offset, random() % (most + 1)};
  }
};

TEST_P(Battery, EqualsGolden) {
  const OpenDataset dataset = open(kAmpleCache);
  std::set<std::string> expected;
  for (const auto& entry : fs::recursive_directory_iterator(GetParam().expected)) {
    if (entry.path().extension() == ".npy" && entry.path().filename() != "attrs.npy" &&
        entry.path().string().find("/@") == std::string::npos) {
      expected.insert(fs::relative(entry.path(), GetParam().expected));
    }
  }
  for (const OpenDataset::File& file : dataset.files()) {
    if (expected.erase(file.path) == 0 || GetParam().inexact.count(file.path) != 0) {
      continue;
    }
    const std::string bytes = expected_bytes(GetParam(), file.path);
    EXPECT_EQ(file.npy->nbytes(), bytes.size()) << file.path;
    EXPECT_TRUE(dataset.read(*file.npy, 0, bytes.size()) == bytes) << file.path;
  }
  EXPECT_TRUE(expected.empty()) << *expected.begin() << " is missing";
}

TEST_P(Battery, AnySliceEqualsTheGoldenSlice) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const OpenDataset dataset = open(kTinyCache);
  for (const auto& [file, bytes] : with_expected(dataset)) {
    for (int i = 0; i < 200; ++i) {
      const auto [offset, nbytes] = random_slice(random, bytes.size());
      ASSERT_TRUE(dataset.read(*file, offset, nbytes) ==
                  bytes.substr(std::min<std::uint64_t>(offset, bytes.size()), nbytes))
          << file->array().name << " " << offset << "+" << nbytes;
    }
  }
}

TEST_P(Battery, ShortReadsAndInterruptionsChangeNothing) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  set_fault(Fault::kShort, seed);
  std::uint64_t source_nbytes = 0;
  // A small file takes few reads, which may all be lucky.
  for (int round = 0; round < 20 && disturbed_calls() == 0; ++round) {
    const OpenDataset dataset = open(kTinyCache);
    source_nbytes = nbytes_of_sources(dataset);
    for (const auto& [file, bytes] : with_expected(dataset)) {
      ASSERT_TRUE(dataset.read(*file, 0, bytes.size()) == bytes) << file->array().name;
    }
  }
  // An empty file is never read.
  ASSERT_EQ(disturbed_calls() > 0, source_nbytes > 0);
}

TEST_P(Battery, AFailingDiskIsReportedAndForgotten) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const OpenDataset dataset = open(kTinyCache);
  for (const auto& [file, bytes] : with_expected(dataset)) {
    for (int i = 0; i < 50; ++i) {
      const auto [offset, nbytes] = random_slice(random, bytes.size());
      set_fault(Fault::kIoError, static_cast<std::uint32_t>(random()));
      try {
        ASSERT_TRUE(dataset.read(*file, offset, nbytes) ==
                    bytes.substr(std::min<std::uint64_t>(offset, bytes.size()), nbytes));
      } catch (const Error& error) {
        ASSERT_EQ(error.to_errno(), EIO) << error.what();
        ASSERT_GT(disturbed_calls(), 0U) << error.what();
      }
    }
    set_fault(Fault::kNone, 1);
    ASSERT_TRUE(dataset.read(*file, 0, bytes.size()) == bytes) << file->array().name;
  }
}

TEST_P(Battery, EightReadersAtOnce) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  const OpenDataset dataset = open(kTinyCache);
  const auto files = with_expected(dataset);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> readers;
  for (std::uint32_t reader = 0; reader < 8; ++reader) {
    readers.emplace_back([&, reader] {
      std::mt19937 random(seed + reader);
      for (int i = 0; i < 100; ++i) {
        const auto& [file, bytes] = files[random() % files.size()];
        const auto [offset, nbytes] = random_slice(random, bytes.size());
        wrong += dataset.read(*file, offset, nbytes) !=
                 bytes.substr(std::min<std::uint64_t>(offset, bytes.size()), nbytes);
      }
    });
  }
  readers.clear();
  EXPECT_EQ(wrong, 0);
}

std::string test_name(const ::testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Formats, Battery, ::testing::ValuesIn(golden_cases()), test_name);

// One small source file, whole and damaged in every way there is.
struct DamagedFile {
  std::string path;    // below tests/data, or below `folder`
  std::string prefix;  // "ffrecord:", so that damage to what it is recognised by is damage
  // Whether every byte of a record is protected by a checksum. Where not, a changed byte may pass.
  bool checked;
  std::vector<std::string> beside{};  // files that must stand beside it, undamaged
  std::string opened{};               // which of these is given as SOURCE; empty: the damaged one
  bool text = false;                  // lines, whose loss at the end nothing tells
  // Below tests/data: the working directory of a file that names others, copied with it.
  std::string folder{};
  // What is opened, if not the file itself: a directory that it lies in.
  std::string location{};
  // --decode x=, where what is left of a file may be a whole one of another kind.
  std::string kind{};
};

class DamageBattery : public ::testing::TestWithParam<DamagedFile> {
 protected:
  void SetUp() override {
    const fs::path source = fs::path(NPYFS_TEST_DATA) / GetParam().folder / GetParam().path;
    folder_ = fs::temp_directory_path() /
              ("npyfs-battery-" + std::to_string(::getpid()) + "-" + source.filename().string());
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    fs::current_path(folder_);
    if (GetParam().folder.empty()) {
      copy_ = folder_ / source.filename();
    } else {
      fs::copy(fs::path(NPYFS_TEST_DATA) / GetParam().folder, folder_, fs::copy_options::recursive);
      copy_ = folder_ / GetParam().path;
      // A data set kept read-only is copied so.
      fs::permissions(copy_, fs::perms::owner_write, fs::perm_options::add);
    }
    whole_ = read_whole_file(source);
    write(whole_);
    for (const std::string& name : GetParam().beside) {
      fs::copy_file(source.parent_path() / name, folder_ / name);
    }
    const OpenDataset dataset = open();
    for (std::uint64_t i = 0; i < record_count(dataset); ++i) {
      records_.push_back(dataset.read_record(dataset.dataset().splits[0], i));
    }
    for (const OpenDataset::File& file : dataset.files()) {
      arrays_[file.path] = dataset.read(*file.npy, 0, file.npy->nbytes());
    }
    ASSERT_FALSE(records_.empty() && arrays_.empty());
  }
  void TearDown() override {
    fs::current_path("/");
    fs::remove_all(folder_);
  }

  void write(const std::string& bytes) const { std::ofstream(copy_, std::ios::binary) << bytes; }
  OpenDataset open() const {
    const DamagedFile& damaged = GetParam();
    const fs::path file = damaged.opened.empty() ? copy_ : folder_ / damaged.opened;
    const std::string source = damaged.location.empty() ? file.string() : damaged.location;
    std::vector<std::string> arguments = {damaged.prefix + source};
    if (!damaged.kind.empty()) {
      arguments.insert(arguments.begin(), {"--decode", "x=" + damaged.kind});
    }
    return {arguments, kTinyCache};
  }

  // 0 for a store.
  static std::uint64_t record_count(const OpenDataset& dataset) {
    const auto& splits = dataset.dataset().splits;
    return !splits.empty() && splits[0].records != nullptr ? splits[0].records->size() : 0;
  }

  // A store's array that is read must be that of the whole file, if `exact` and it has kept its
  // name; an array of records may have lost some.
  void check_array(const std::string& what, bool exact, const std::string& path,
                   const std::string& bytes) const {
    const auto whole = arrays_.find(path);
    if (exact && records_.empty() && whole != arrays_.end()) {
      EXPECT_TRUE(bytes == whole->second) << what << ", " << path;
    }
  }

  enum class Outcome { kRefused, kOpened };

  // Opens the damaged copy; every record of it must be refused, or, if `exact`, be that of the
  // whole file with its number. Every byte of every array must be there or be refused.
  Outcome read_damaged(const std::string& what, bool exact) {
    try {
      const OpenDataset dataset = open();
      for (std::uint64_t i = 0; i < record_count(dataset); ++i) {
        try {
          const std::string record = dataset.read_record(dataset.dataset().splits[0], i);
          if (exact) {
            EXPECT_LT(i, records_.size()) << what;
            EXPECT_TRUE(i < records_.size() && record == records_[i]) << what << ", record " << i;
          }
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << what << ": " << error.what();
        }
      }
      for (const OpenDataset::File& file : dataset.files()) {
        try {
          const std::string bytes = dataset.read(*file.npy, 0, file.npy->nbytes());
          EXPECT_EQ(bytes.size(), file.npy->nbytes());
          check_array(what, exact, file.path, bytes);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << what << ": " << error.what();
        }
      }
      return Outcome::kOpened;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(copy_.filename().string()), std::string::npos)
          << what << ": the message names no file: " << error.what();
      return Outcome::kRefused;
    }
  }

  fs::path folder_;
  fs::path copy_;
  std::string whole_;
  std::vector<std::string> records_;
  std::map<std::string, std::string> arrays_;  // by path
};

TEST_P(DamageBattery, EveryTruncation) {
  // All of the first and last 600 bytes, every seventh between.
  std::size_t refused = 0;
  for (std::size_t n = 0; n < whole_.size(); n += n < 600 || n + 600 > whole_.size() ? 1 : 7) {
    write(whole_.substr(0, n));
    refused += read_damaged("cut to " + std::to_string(n) + " bytes", !GetParam().text) ==
               Outcome::kRefused;
  }
  EXPECT_GT(refused, 0U);
}

TEST_P(DamageBattery, EveryFlippedByteOfTheBeginning) {
  for (std::size_t i = 0; i < std::min<std::size_t>(whole_.size(), 400); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string damaged = whole_;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      write(damaged);
      read_damaged("byte " + std::to_string(i) + " ^ " + std::to_string(mask), GetParam().checked);
    }
  }
}

TEST_P(DamageBattery, RandomDamageAnywhere) {
  const std::uint32_t seed = test_seed();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole_;
    // One stretch of up to 32 bits: what a CRC-32 is sure to find.
    const std::size_t at = random() % damaged.size();
    for (std::size_t k = at; k < std::min(damaged.size(), at + 4); ++k) {
      damaged[k] = static_cast<char>(random());
    }
    write(damaged);
    read_damaged("4 random bytes at " + std::to_string(at), GetParam().checked);
  }
}

const std::vector<DamagedFile>& files_to_damage() {
  static const std::vector<DamagedFile> kFiles = {
      {"kaldi/tables/mat_f64.ark", "ark:", false},
      {"kaldi/tables/sparse.ark", "ark:", false},
      {"kaldi/tables/cm2_kaldiio.ark", "ark:", false},
      {"kaldi/tables/vec_f64.ark", "ark:", false},
      {"kaldi/tables/mat_text.ark", "ark:", false},
      {"kaldi/tables/ali.ark", "ark:", false, {}, "", false, "", "", "int32vector"},
      {"kaldi/tables/post.ark", "ark:", false, {}, "", false, "", "", "posterior"},
      {"kaldi/tables/mat_f32.ark.gz", "ark:", true},
      {"data/train/feats.scp", "scp:", false, {}, "", false, "kaldi/recipe"},
      {"data/dev/feats.scp", "kaldi:", false, {}, "", false, "kaldi/recipe", "data/dev"},
      {"data/dev/text", "kaldi:", false, {}, "", false, "kaldi/recipe", "data/dev"},
      {"ffrecord/fixed_f32.ffr", "ffrecord:", true},
      {"ffrecord/npy_samples.ffr", "ffrecord:", true},
      {"ffrecord/pickled_pair.ffr", "ffrecord:", true},
      {"ffrecord/packed_folder.ffr", "ffrecord:", true},
      {"ffrecord/images.ffr", "ffrecord:", true},
      {"recordio/image_multi.rec", "recordio:", false},
      {"recordio/noidx.rec", "recordio:", false},
      {"recordio/magic_noidx.rec", "recordio:", false},
      {"tar/dialect/sparse-pax1.0.tar", "tar:", false},
      {"tar/dialect/gnu.tar", "tar:", false},
      {"tar/wds/npy-ragged-00.tar", "tar:", false},
      {"tar/comp/zst-0.tar.zst", "tar:", true},
      {"tar/comp/xz-blocks-0.tar.xz", "tar:", true},
      {"tar/comp/bz2-0.tar.bz2", "tar:", true},
      {"tar/comp/gz-members-0.tar.gz", "tar:", true},
      {"tar/comp/lz4-0.tar.lz4", "tar:", true},
      {"raw_seg.data.list", "wenet:", false, {}, "", false, "tar/wenet"},
      {"data.list", "wenet:", false, {}, "", false, "tar/wenet"},
      {"tfrecord/raw_varlen.tfrecord", "tfrecord:", true},
      {"tfrecord/example_ragged.tfrecord", "tfrecord:", true},
      {"tfrecord/example_full_gzip.tfrecord.gz", "tfrecord:", true},
      {"npy_dir/das.npy/test/y_sine.npy", "npy:", false},
      {"npy_dir/das_export/rec0.npz", "npy:", true},
      {"npy_dir/das_export/rec3.npz", "npy:", true},
      // How many frames there are is believed before the recording is verified, and labels are
      // made.
      {"npy_dir/das_export/rec0.npz", "das:", false, {"rec0_annotations.csv"}},
      {"npy_dir/das_export/rec1_annotations.csv", "das:", false, {"rec1.npz"}, "rec1.npz", true},
      {"hdf5/vds_src.h5", "hdf5:", false},
      // A chunk whose name is damaged was never written, and the array's type is what is said.
      {"zarr/v2_zip_stored.zip", "zarr:", false},
      {"zarr/v2_root_array.zarr/.zarray", "zarr:", false, {"0.0", "1.0", "2.0"}, ".", true}};
  return kFiles;
}

INSTANTIATE_TEST_SUITE_P(Formats, DamageBattery, ::testing::ValuesIn(files_to_damage()),
                         [](const ::testing::TestParamInfo<DamagedFile>& info) {
                           std::string name = info.param.prefix + info.param.path;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

// A row of the table without a file to damage would go untested.
TEST(DamageBatteryTable, HasEveryFormat) {
  std::set<std::string> damaged;
  for (const DamagedFile& file : files_to_damage()) {
    damaged.insert(file.prefix);
  }
  for (const Format& format : formats()) {
    EXPECT_EQ(damaged.count(std::string(format.name) + ":"), 1U) << format.name;
  }
}

}  // namespace

}  // namespace npyfs::testing
