// SPDX-License-Identifier: Apache-2.0
//
// What the user may say about a field, what is said to the user, and what damage costs.

#include <gmock/gmock.h>
#include <malloc.h>

#include "formats/arrays/layout.h"
#include "tests/arrays/review_tables.h"

namespace npyfs::testing {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LayoutReview : public ::testing::Test {
 protected:
  LaidOutField lay(const std::shared_ptr<MemoryTable>& table) {
    const Field& field = table->fields()[0];
    return lay_out(field.name, field, table, choices_,
                   [&](const std::string& text) { warnings_.push_back(text); });
  }
  static std::shared_ptr<MemoryTable> typed(const std::string& dtype,
                                            std::vector<MemoryItem> items) {
    auto table = std::make_shared<MemoryTable>("set", items.size());
    table->add_typed("x", std::make_shared<MemoryColumn>(dtype, std::move(items)));
    return table;
  }
  std::string refusal(const std::shared_ptr<MemoryTable>& table, ErrorKind kind) {
    try {
      lay(table);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    return "accepted";
  }

  FieldChoices choices_;
  std::vector<std::string> warnings_;
};

// The element with which rows of `dtype` are padded, or "refused".
std::string padding(const std::string& value, const std::string& dtype) {
  const std::size_t itemsize = DType::simple(dtype).itemsize;
  auto table = std::make_shared<MemoryTable>("set", 2);
  const std::vector<MemoryItem> items = {{{1}, std::string(itemsize, '#')},
                                         {{2}, std::string(2 * itemsize, '#')}};
  table->add_typed("x", std::make_shared<MemoryColumn>(dtype, items));
  FieldChoices choices;
  choices.layout["x"] = Layout::kPad;
  choices.pad_value = value;
  try {
    const LaidOutField laid =
        lay_out("x", table->fields()[0], table, choices, [](const std::string&) {});
    return read_range(*laid.arrays[0].array, {itemsize, 2 * itemsize});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    return "refused";
  }
}

TEST(PadValueReview, IsTakenWhole) {
  EXPECT_EQ(padding("1e3", "<i4"), packed<std::int32_t>({1000}));
  EXPECT_EQ(padding("1e3", ">i2"), std::string("\x03\xe8", 2));
  EXPECT_EQ(padding("-2.0", "|i1"), "\xfe");
  EXPECT_EQ(padding("+7", "|u1"), "\x07");
  EXPECT_EQ(padding("1.5", "<i4"), "refused");
  EXPECT_EQ(padding("1x", "<i4"), "refused");
  EXPECT_EQ(padding("1x", "<f4"), "refused");
  EXPECT_EQ(padding("", "<i4"), "refused");
  EXPECT_EQ(padding("nan", "<i4"), "refused");
}

TEST(PadValueReview, ReachesBothEndsOfItsType) {
  EXPECT_EQ(padding("18446744073709551615", "<u8"), packed<std::uint64_t>({UINT64_MAX}));
  EXPECT_EQ(padding("9223372036854775809", "<u8"),
            packed<std::uint64_t>({(std::uint64_t{1} << 63) + 1}));
  EXPECT_EQ(padding("1e19", "<u8"), packed<std::uint64_t>({10'000'000'000'000'000'000U}));
  EXPECT_EQ(padding("18446744073709551616", "<u8"), "refused");
  EXPECT_EQ(padding("9223372036854775807", "<i8"), packed<std::int64_t>({INT64_MAX}));
  EXPECT_EQ(padding("-9223372036854775808", "<i8"), packed<std::int64_t>({INT64_MIN}));
  EXPECT_EQ(padding("9223372036854775808", "<i8"), "refused");
  EXPECT_EQ(padding("-1", "<u8"), "refused");
  EXPECT_EQ(padding("255", "|u1"), "\xff");
  EXPECT_EQ(padding("256", "|u1"), "refused");
  EXPECT_EQ(padding("-129", "|i1"), "refused");
  EXPECT_EQ(padding("1e300", "<f4"), "refused");
  EXPECT_EQ(padding("1e5", "<f2"), "refused");
  EXPECT_EQ(padding("-inf", "<f4"), packed<float>({-HUGE_VALF}));
}

TEST(PadValueReview, OfABoolIsFalseOrTrue) {
  EXPECT_EQ(padding("1", "|b1"), "\x01");
  EXPECT_EQ(padding("2", "|b1"), "refused");
  EXPECT_EQ(padding("255", "|b1"), "refused");
}

TEST(PadValueReview, ZeroFitsEveryType) {
  for (const char* dtype :
       {"|b1", "<u8", ">f2", "<f4", "<f8", "<f16", "<c8", "<c16", "<U3", "|S5", "<M8[ns]", "|V7"}) {
    EXPECT_EQ(padding("0", dtype), std::string(DType::simple(dtype).itemsize, '\0')) << dtype;
  }
  EXPECT_EQ(padding("1", "<U3"), "refused");
  EXPECT_EQ(padding("-0.0", "<f4"), packed<float>({-0.0F}));
}

TEST_F(LayoutReview, RefusesToShowBytesThatAreNotThere) {
  const auto table = typed("<i8", {{{}, "12345678"}});
  choices_.layout["x"] = Layout::kBytes;
  EXPECT_THAT(refusal(table, ErrorKind::kUsage), HasSubstr("--layout x=bytes"));
  choices_.layout.clear();
  choices_.decode["x"] = "raw";
  EXPECT_THAT(refusal(table, ErrorKind::kUsage), HasSubstr("--decode x=raw"));
}

TEST_F(LayoutReview, SaysThatADamagedRecordOfUnknownSizeHasNoRows) {
  lay(typed("|u1", {{{2}, "aa"},
                    {{1}, "b"},
                    {{1}, "", true, false, damage_at("set: 2 is cut")},
                    {{1}, "", true, false, damage_at("set: 3 is cut", 1)},
                    {{1}, "", true, false, damage_at("set: 4 is cut")}}));
  EXPECT_THAT(warnings_,
              ElementsAre("set: 2 is cut (and 2 more damaged records)",
                          "set: record 2 is damaged and its size is unknown; x has no rows of it "
                          "(and of 1 more)"));
}

TEST_F(LayoutReview, SaysNothingOfRowsThatAllRecordsHave) {
  lay(typed("|u1", {{{2}, "aa"}, {{2}, "", true, false, damage_at("set: 1 is cut")}}));
  EXPECT_THAT(warnings_, ElementsAre("set: 1 is cut"));
}

TEST_F(LayoutReview, ASurveyVerifiesOnlyWhereThatIsWanted) {
  choices_.dtype.emplace("x", DType::simple("<i4"));
  choices_.shape.emplace("x", Shape{1});
  for (const bool verified : {false, true}) {
    auto table = std::make_shared<MemoryTable>("set");
    table->add_bytes("x", {"1234", "12345", "1234"});
    table->state().failing = {1};
    table->state().verified = verified;
    if (verified) {
      EXPECT_EQ(read_all(*lay(table).arrays[0].array), "1234????1234");
    } else {
      EXPECT_THAT(refusal(table, ErrorKind::kCorrupt), HasSubstr("record 1 is 5 bytes"));
      EXPECT_EQ(table->asked().checksums_asked, 0U);
    }
  }
}

// The same text for all but a few, as formats do it.
class DamagedBytes : public ByteColumn {
 public:
  explicit DamagedBytes(std::uint64_t size)
      : size_(size), source_(std::make_shared<MemorySource>("set", "x")) {}
  std::uint64_t size() const override { return size_; }
  bool locate(std::uint64_t /*record*/, std::vector<Extent>& out) const override {
    out.assign(1, {source_.get(), 0, 1});
    return true;
  }
  const Damage* damage(std::uint64_t record) const override {
    return record > 0 ? &damage_ : nullptr;
  }

 private:
  std::uint64_t size_;
  SourcePtr source_;
  Damage damage_ = damage_at(std::string(200, 'd'));
};

TEST_F(LayoutReview, MillionsOfDamagedRecordsCostLittle) {
  constexpr std::uint64_t kRecords = 200'000;
  auto table = std::make_shared<MemoryTable>("set", kRecords);
  Field field;
  field.name = "x";
  field.bytes = std::make_shared<DamagedBytes>(kRecords);
  const std::size_t before = ::mallinfo2().uordblks;
  const LaidOutField laid = lay_out("x", field, table, choices_, [](const std::string&) {});
  const std::size_t nbytes = ::mallinfo2().uordblks - before;
  EXPECT_LT(nbytes, 32 * kRecords);
  EXPECT_EQ(laid.damaged.size(), kRecords - 1);
  EXPECT_EQ(read_all(*laid.arrays[0].array), "x" + std::string(kRecords - 1, '?'));
}

}  // namespace

}  // namespace npyfs::testing
