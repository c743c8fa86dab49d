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
