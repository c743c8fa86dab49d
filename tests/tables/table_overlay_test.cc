// SPDX-License-Identifier: Apache-2.0
//
// What an overlay changes of a table, and that all else stays.

#include "formats/table_overlay.h"

#include <gtest/gtest.h>

#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::fake_damage;
using testing::FakeRecords;
using testing::FakeTable;
using testing::make_table;

FakeRecords three_records() {
  FakeRecords records;
  records.fields = {bytes_field("x", {"a", "bc", "d"})};
  records.key_kind = KeyKind::kInteger;
  records.int_keys = {7, 8, 9};
  records.damage.emplace(1, fake_damage("cut"));
  return records;
}

TEST(TableOverlay, WithoutChangesIsItsBase) {
  const auto base = std::make_shared<FakeTable>(three_records());
  const TableOverlay overlay(base);
  EXPECT_EQ(overlay.size(), 3U);
  EXPECT_EQ(&overlay.fields(), &base->fields());
  EXPECT_EQ(&overlay.stored(), &base->stored());
  EXPECT_EQ(overlay.key_kind(), KeyKind::kInteger);
  EXPECT_EQ(overlay.int_key(2), 9);
  EXPECT_EQ(overlay.damage(1), base->damage(1));
  EXPECT_EQ(overlay.damaged_count(), 1U);
  EXPECT_EQ(overlay.shard_starts(), base->shard_starts());
  EXPECT_EQ(overlay.sources(), base->sources());
}

TEST(TableOverlay, OtherKeysLeaveDamageAndFields) {
  const auto base = std::make_shared<FakeTable>(three_records());
  TableOverlay overlay(base);
  StringList keys;
  for (const char* key : {"s1", "s1", "s2"}) {
    keys.append(key);
  }
  overlay.set_text_keys(std::move(keys));
  EXPECT_EQ(overlay.key_kind(), KeyKind::kText);
  EXPECT_EQ(overlay.text_key(1), "s1");
  EXPECT_EQ(overlay.text_key(2), "s2");
  EXPECT_EQ(overlay.damage(1), base->damage(1));
  EXPECT_EQ(overlay.damaged_count(), 1U);
  EXPECT_EQ(&overlay.fields(), &base->fields());
}

TEST(TableOverlay, FieldsOfAnotherTableBringItsSources) {
  const auto base = std::make_shared<FakeTable>(three_records());
  FakeRecords more;
  more.fields = {bytes_field("words", {"1", "2", "3"})};
  const TablePtr other = make_table(std::move(more));
  TableOverlay overlay(base);
  std::vector<Field> fields = overlay.fields();
  fields.push_back(other->fields().front());
  overlay.set_fields(fields);
  overlay.add_source_table(other);
  ASSERT_EQ(overlay.fields().size(), 2U);
  EXPECT_EQ(overlay.fields()[1].name, "words");
  std::vector<SourcePtr> both = base->sources();
  both.push_back(other->sources().front());
  EXPECT_EQ(overlay.sources(), both);
}

}  // namespace
}  // namespace npyfs
