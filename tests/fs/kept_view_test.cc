// SPDX-License-Identifier: Apache-2.0
//
// A view through what is kept of the plain array: which bytes come from where, and what happens
// when blocks go between the plan and the read.

#include "fs/kept_view.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "formats/arrays/view.h"
#include "kept/eviction.h"
#include "kept/kept_folder.h"
#include "tests/kept/kept_setting.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::CacheFolder;
using testing::FakeRecords;
using testing::FakeTable;
using testing::make_table;

constexpr std::uint64_t kRecords = 900;
constexpr std::uint64_t kRecordNbytes = 6000;  // 5.4 MB: three blocks

class KeptViewTest : public ::testing::Test {
 protected:
  KeptViewTest() {
    std::mt19937 random(3);
    std::vector<std::string> items;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      std::string& item = items.emplace_back(kRecordNbytes, '\0');
      for (char& byte : item) {
        byte = static_cast<char>(random());
      }
    }
    FakeRecords records;
    records.fields = {bytes_field("x", items)};
    table_ = make_table(std::move(records));
    dataset_ =
        build_dataset({{"train", "", "train", "fake", {table_}}}, {}, [](const std::string&) {});
    plain_ = std::make_unique<NpyFile>(dataset_.splits.at(0).arrays.at(0), 64);
    kept_ = open_kept();
  }

  // As another process would.
  std::shared_ptr<KeptArray> open_kept() {
    return cache_folder_.open()->open(testing::key_of(1), plain_->nbytes());
  }

  void keep(const std::vector<std::uint64_t>& blocks) {
    Plan plan;
    plain_->plan_read({0, plain_->nbytes()}, plan);
    const auto bytes = testing::bytes_of(testing::read_plan(plan));
    for (const std::uint64_t block : blocks) {
      const KeptArray::BlockBytes part{
          block, std::span(bytes).subspan(block * kKeptBlockNbytes, kept_->block_nbytes(block))};
      ASSERT_EQ(kept_->write_blocks({&part, 1}), KeptArray::Outcome::kKept);
    }
  }

  // All bytes of a file as requests of 128 KiB get them; `between` is done after each plan.
  template <typename Between>
  std::string read(const File& file, const KeptView* view, const Between& between) {
    constexpr std::uint64_t kRequest = 128 << 10;
    std::string bytes;
    for (std::uint64_t begin = 0; begin < file.nbytes(); begin += kRequest) {
      Gathered gathered;
      fetcher_.read(
          {begin, begin + kRequest},
          [&](ByteRange range, Plan& plan) {
            if (view == nullptr) {
              file.plan_read(range, plan);
            } else {
              all_are_kept_ = view->plan_read(range, plan) && all_are_kept_;
            }
            between();
          },
          gathered);
      for (const iovec& part : gathered.parts()) {
        bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
      }
    }
    return bytes;
  }

  // Reads the view through what is kept, and compares. Returns how often sources were read.
  template <typename Between>
  std::uint64_t expect_right(const std::string& name, const Between& between) {
    const Dataset shown = make_view(dataset_, parse_view(name).value());
    const NpyFile file(shown.splits.at(0).arrays.back(), 64);
    EXPECT_EQ(file.array().name, "x");
    const std::string expected = read(file, nullptr, [] {});
    const auto view = make_kept_view(
        file, *plain_, [&] { return kept_; }, fetcher_);
    EXPECT_NE(view, nullptr);
    table_->source().forget_reads();
    EXPECT_EQ(read(file, view.get(), between), expected) << name;
    return table_->source().reads();
  }
  std::uint64_t expect_right(const std::string& name) {
    return expect_right(name, [] {});
  }

  CacheFolder cache_folder_;
  std::shared_ptr<const FakeTable> table_;
  Dataset dataset_;
  std::unique_ptr<NpyFile> plain_;
  std::shared_ptr<KeptArray> kept_;
  VerifiedRecords verified_{Verify::kRead};
  BlockCache cache_{5000, verified_};
  const Fetcher fetcher_{cache_, verified_};
  bool all_are_kept_ = true;
};

const std::vector<std::string> kViews = {"@shuffle=1", "@part=1of3",
                                         "@rows=7:800,shuffle=3,block=9", "@part=2of7,equal=wrap"};

TEST_F(KeptViewTest, ReadsNoSourceOfACompleteArray) {
  keep({0, 1, 2});
  ASSERT_TRUE(kept_->is_complete());
  for (const std::string& view : kViews) {
    EXPECT_EQ(expect_right(view), 0U) << view;
  }
  EXPECT_TRUE(all_are_kept_);
}

TEST_F(KeptViewTest, ReadsSourcesForWhatIsNotKept) {
  EXPECT_GT(expect_right("@shuffle=1"), 800U);
  keep({1});
  const std::uint64_t reads = expect_right("@shuffle=1");
  EXPECT_GT(reads, 400U);
  EXPECT_LT(reads, 700U);
  EXPECT_FALSE(all_are_kept_);
  EXPECT_EQ(expect_right("@rows=400:600"), 0U);  // of the second block alone
  for (const std::string& view : kViews) {
    expect_right(view);
  }
}

TEST_F(KeptViewTest, ReadsSourcesForBlocksThatGoBetweenPlanAndRead) {
  for (const std::string& view : kViews) {
    keep({0, 1});
    std::uint64_t plans = 0;
    const std::uint64_t reads = expect_right(view, [&] {
      if (++plans % 5 == 3) {
        evict(cache_folder_.open()->disk(), 1, "", std::chrono::seconds(0));
      }
    });
    EXPECT_GT(reads, 0U) << view;
    kept_ = open_kept();
  }
}

TEST_F(KeptViewTest, IsNoneOfAnotherArray) {
  const Dataset other =
      build_dataset({{"train", "", "train", "fake", {table_}}}, {}, [](const std::string&) {});
  const Dataset shown = make_view(other, parse_view("@shuffle=1").value());
  const auto kept = [&] { return kept_; };
  for (const NamedArray& array : shown.splits.at(0).arrays) {
    EXPECT_EQ(make_kept_view(NpyFile(array, 64), *plain_, kept, fetcher_), nullptr);
  }
  EXPECT_EQ(make_kept_view(*plain_, *plain_, kept, fetcher_), nullptr);
}

}  // namespace
}  // namespace npyfs
