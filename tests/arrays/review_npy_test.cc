// SPDX-License-Identifier: Apache-2.0
//
// Payloads that are .npy files: one damaged header concerns its own record only.

#include <gmock/gmock.h>

#include "formats/arrays/layout.h"
#include "formats/bytes/npy_header.h"
#include "tests/arrays/review_tables.h"

namespace npyfs::testing {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string npy_of(const std::string& data, const char* dtype = "|u1") {
  return print_npy_header(DType::simple(dtype), {data.size()}, false) + data;
}

class NpyReview : public ::testing::Test {
 protected:
  LaidOutField lay(std::vector<std::string> payloads, std::set<std::uint64_t> failing,
                   bool verified = true) {
    table_ = std::make_shared<MemoryTable>("set");
    table_->state().verified = verified;
    table_->state().failing = std::move(failing);
    table_->add_bytes("x", {payloads.begin(), payloads.end()});
    return lay_out("x", table_->fields()[0], table_, {},
                   [&](const std::string& text) { warnings_.push_back(text); });
  }
  static std::vector<std::string> four() {
    return {npy_of("aaa"), npy_of("bbb"), npy_of("ccc"), npy_of("ddd")};
  }

  std::shared_ptr<MemoryTable> table_;
  std::vector<std::string> warnings_;
};

TEST_F(NpyReview, AFlippedMagicIsTheDamageOfItsRecord) {
  for (const std::uint64_t bad : {0, 2}) {
    SCOPED_TRACE(bad);
    warnings_.clear();
    auto payloads = four();
    payloads[bad][1] ^= 1;
    const LaidOutField laid = lay(payloads, {bad});
    EXPECT_EQ(laid.arrays[0].array->shape(), (Shape{4, 3}));
    std::string expected = "aaabbbcccddd";
    expected.replace(3 * bad, 3, "???");
    EXPECT_EQ(read_all(*laid.arrays[0].array), expected);
    EXPECT_THAT(laid.damaged, ElementsAre(bad));
    ASSERT_EQ(warnings_.size(), 1U);
    EXPECT_THAT(warnings_[0], HasSubstr("record " + std::to_string(bad)));
  }
}

TEST_F(NpyReview, AFlippedShapeIsTheDamageOfItsRecord) {
  for (const std::uint64_t bad : {0, 2}) {
    SCOPED_TRACE(bad);
    auto payloads = four();
    payloads[bad][payloads[bad].find("(3,)") + 1] = '2';
    const LaidOutField laid = lay(payloads, {bad});
    EXPECT_EQ(laid.arrays.size(), 1U);
    EXPECT_EQ(laid.arrays[0].array->shape(), (Shape{4, 3}));
    EXPECT_THAT(laid.damaged, ElementsAre(bad));
  }
}

TEST_F(NpyReview, AFlippedTypeIsTheDamageOfItsRecord) {
  for (const std::uint64_t bad : {0, 2}) {
    SCOPED_TRACE(bad);
    auto payloads = four();
    payloads[bad][payloads[bad].find("|u1") + 1] = 'i';
    const LaidOutField laid = lay(payloads, {bad});
    EXPECT_EQ(laid.arrays[0].array->shape(), (Shape{4, 3}));
    EXPECT_EQ(laid.arrays[0].array->dtype().text(), "|u1");
    EXPECT_THAT(laid.damaged, ElementsAre(bad));
  }
}

TEST_F(NpyReview, AMemberThatIsIntactAndOfAnotherKindStillMakesItBytes) {
  auto payloads = four();
  payloads[2] = "no npy";
  const LaidOutField laid = lay(payloads, {});
  EXPECT_EQ(laid.arrays[0].array->dtype().text(), "|u1");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("record 2 is no .npy file")));
}

TEST_F(NpyReview, NothingIsVerifiedWhereThatIsNotWanted) {
  auto payloads = four();
  payloads[2][1] ^= 1;
  lay(payloads, {2}, false);
  EXPECT_EQ(table_->asked().checksums_asked, 0U);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("record 2 is no .npy file")));
}

TEST_F(NpyReview, ADamagedRecordAmongRaggedOnesKeepsItsRows) {
  std::vector<std::string> payloads = {npy_of("a"), npy_of("bb"), npy_of("ccc"), npy_of("dddd")};
  payloads[2][1] ^= 1;
  const LaidOutField laid = lay(payloads, {2});
  EXPECT_EQ(read_all(*laid.arrays[0].array), "abb???dddd");
  EXPECT_EQ(read_all(*laid.arrays[1].array), packed<std::int64_t>({0, 1, 3, 6, 10}));
}

TEST_F(NpyReview, RaggedMembersAreNotAllVerified) {
  std::vector<std::string> payloads;
  for (std::size_t i = 0; i < 1000; ++i) {
    payloads.push_back(npy_of(std::string(1 + i % 7, 'x')));
  }
  lay(payloads, {});
  EXPECT_GT(table_->asked().checksums_asked, 0U);
  EXPECT_LT(table_->asked().checksums_asked, 40U);
}

TEST_F(NpyReview, FirstRecordsThatAllFailAreNotAllRead) {
  const LaidOutField laid = lay(std::vector<std::string>(1000, "plain"), [] {
    std::set<std::uint64_t> all;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      all.insert(i);
    }
    return all;
  }());
  EXPECT_EQ(laid.arrays[0].array->shape(), (Shape{1000, 5}));
  EXPECT_LT(table_->asked().checksums_asked, 40U);
}

}  // namespace

}  // namespace npyfs::testing
