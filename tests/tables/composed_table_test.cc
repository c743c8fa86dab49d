// SPDX-License-Identifier: Apache-2.0
//
// Tables made of tables, against what they are made of.

#include "formats/tables/composed_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "formats/arrays/layout.h"
#include "tests/support/fake_table.h"
#include "tests/support/read_plan.h"

namespace npyfs {
namespace {

using testing::bytes_field;
using testing::fake_damage;
using testing::FakeField;
using testing::FakeRecords;
using testing::FakeTable;
using testing::make_table;
using testing::refusal_of;
using testing::typed_field;
using Strings = std::vector<std::string>;

const Field* find_field(const RecordTable& table, const std::string& name) {
  for (const Field& field : table.fields()) {
    if (field.name == name) {
      return &field;
    }
  }
  return nullptr;
}

// Every record's bytes; "-" where it lacks the field, "!" where it is damaged.
Strings contents(const ByteColumn& column) {
  Strings all;
  for (std::uint64_t i = 0; i < column.size(); ++i) {
    std::vector<Extent> extents;
    if (column.damage(i) != nullptr) {
      all.push_back("!");
    } else if (!column.locate(i, extents)) {
      all.push_back("-");
    } else {
      std::string bytes(stored_nbytes(column, i), '\0');
      read_stored(column, i, 0, std::as_writable_bytes(std::span(bytes)));
      all.push_back(bytes);
    }
  }
  return all;
}

Strings contents(const Column& column) {
  Strings all;
  for (std::uint64_t i = 0; i < column.size(); ++i) {
    Item item;
    column.inspect(i, item);
    if (item.damage != nullptr) {
      all.push_back("!");
    } else if (!item.present) {
      all.push_back("-");
    } else {
      Plan plan;
      column.plan(i, {0, item.dtype.itemsize * *element_count(item.shape)}, plan);
      all.push_back(item.dtype.text() + shape_text(item.shape) + testing::read_plan(plan));
    }
  }
  return all;
}

Strings contents(const RecordTable& table, const std::string& name) {
  const Field* field = find_field(table, name);
  if (field == nullptr) {
    return {"no such field"};
  }
  return field->bytes != nullptr ? contents(*field->bytes) : contents(*field->typed);
}

// The records a run reaches over are those the view shows next, without a gap.
void expect_runs(const ByteColumn& column) {
  for (std::uint64_t i = 0; i < column.size(); ++i) {
    std::vector<Extent> first;
    if (column.damage(i) != nullptr || !column.locate(i, first)) {
      continue;
    }
    const std::uint64_t run = column.run(i);
    ASSERT_GE(run, 1U);
    ASSERT_LE(i + run, column.size());
    for (std::uint64_t j = 1; j < run; ++j) {
      std::vector<Extent> next;
      ASSERT_EQ(column.damage(i + j), nullptr);
      ASSERT_TRUE(column.locate(i + j, next));
      ASSERT_EQ(next[0].source, first[0].source);
      ASSERT_EQ(next[0].offset, first[0].offset + j * first[0].nbytes);
      ASSERT_EQ(next[0].nbytes, first[0].nbytes);
      ASSERT_EQ(column.guard(i + j).checksums, column.guard(i).checksums);
      ASSERT_EQ(column.guard(i + j).first,
                column.guard(i).first + (column.guard(i).checksums != nullptr ? j : 0));
    }
  }
}

TablePtr keyed(const Strings& payloads, const Strings& keys) {
  FakeRecords records;
  records.fields = {bytes_field("x", payloads)};
  records.key_kind = KeyKind::kText;
  records.text_keys = keys;
  return make_table(std::move(records));
}

TablePtr numbered(const Strings& payloads, const std::vector<std::int64_t>& keys) {
  FakeRecords records;
  records.fields = {bytes_field("x", payloads)};
  records.key_kind = KeyKind::kInteger;
  records.int_keys = keys;
  return make_table(std::move(records));
}

TablePtr empty_table(KeyKind kind = KeyKind::kNone) {
  FakeRecords records;
  records.fields = {bytes_field("never", {})};
  records.key_kind = kind;
  return make_table(std::move(records));
}

TEST(Concatenate, ReturnsOneTableAsItIs) {
  const TablePtr one = make_table(bytes_field("x", {"a"}));
  EXPECT_EQ(concatenate({one}), one);
}

TEST(Concatenate, OfNothingIsEmpty) {
  const TablePtr table = concatenate({});
  EXPECT_EQ(table->size(), 0U);
  EXPECT_TRUE(table->fields().empty());
}

TEST(Concatenate, PutsRecordsInOrder) {
  const TablePtr table = concatenate({make_table(bytes_field("x", {"a", "bb"}), "one"),
                                      make_table(bytes_field("x", {}), "two"),
                                      make_table(bytes_field("x", {"ccc"}), "three")});
  ASSERT_EQ(table->size(), 3U);
  EXPECT_EQ(contents(*table, "x"), (Strings{"a", "bb", "ccc"}));
  EXPECT_EQ(contents(*table->stored().at(0).bytes), (Strings{"a", "bb", "ccc"}));
  ASSERT_EQ(table->sources().size(), 3U);
  EXPECT_EQ(table->sources()[2]->name(), "three");
}

TEST(Concatenate, ATableWithoutAFieldLacksItInAllRecords) {
  FakeRecords both;
  both.fields = {bytes_field("x", {"c"}), bytes_field("y", {"C"})};
  const TablePtr table = concatenate({make_table(bytes_field("x", {"a", "b"})), make_table(both),
                                      make_table(bytes_field("y", {"D"}))});
  EXPECT_EQ(contents(*table, "x"), (Strings{"a", "b", "c", "-"}));
  EXPECT_EQ(contents(*table, "y"), (Strings{"-", "-", "C", "D"}));
  EXPECT_EQ(find_field(*table, "x")->bytes->run(3), 1U);
  EXPECT_EQ(find_field(*table, "x")->bytes->equal_nbytes(), std::nullopt);
}

TEST(Concatenate, TypedFieldsToo) {
  const TablePtr table = concatenate(
      {make_table(typed_field("t", "|u1", {{{2}, "ab"}, {{1}, "c"}})),
       make_table(bytes_field("x", {"z"})), make_table(typed_field("t", "<i2", {{{}, "de"}}))});
  EXPECT_EQ(contents(*table, "t"), (Strings{"|u1(2,)ab", "|u1(1,)c", "-", "<i2()de"}));
  EXPECT_EQ(find_field(*table, "t")->typed->uniform(), std::nullopt);
}

TEST(Concatenate, ATextThatATableLacksIsEmptyThere) {
  const auto text = [](const std::string& dtype, const std::string& bytes) {
    return typed_field("text", dtype, {{{}, bytes}});
  };
  FakeRecords with;
  with.fields = {bytes_field("x", {"1"}), text("<U1", std::string("a\0\0\0", 4))};
  FakeRecords without;
  without.fields = {bytes_field("x", {"2", "3"})};
  const TablePtr table = concatenate({make_table(without), make_table(with)});
  const std::string none(4, '\0');
  EXPECT_EQ(contents(*table, "text"),
            (Strings{"<U1()" + none, "<U1()" + none, std::string("<U1()a\0\0\0", 9)}));
  const LaidOutField laid =
      lay_out("text", *find_field(*table, "text"), table, {}, [](const std::string&) {});
  ASSERT_EQ(laid.arrays.size(), 1U);
  EXPECT_EQ(laid.arrays[0].array->shape(), Shape{3});
  EXPECT_EQ(testing::read_array(*laid.arrays[0].array), none + none + std::string("a\0\0\0", 4));
  // Of other kinds there is nothing to be empty.
  with.fields[1] = typed_field("text", "<i4", {{{}, "abcd"}});
  EXPECT_EQ(contents(*concatenate({make_table(without), make_table(with)}), "text"),
            (Strings{"-", "-", "<i4()abcd"}));
}

// A column that says something of each thing that a column may say.
struct Telling : Column {
  explicit Telling(std::uint32_t rate, std::string clash = {})
      : rate_(rate), clash_(std::move(clash)) {}
  std::uint64_t size() const override { return 2; }
  void inspect(std::uint64_t /*record*/, Item& item) const override {
    item.dtype = DType::simple("<i2");
    item.shape = {3};
  }
  void plan(std::uint64_t /*record*/, ByteRange range, Plan& plan) const override {
    plan.add_fill({&kByte, 1}, 0, range.nbytes());
  }
  bool time_series() const override { return true; }
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t known) const override {
    return record + known;
  }
  std::optional<std::uint32_t> rate_hz() const override {
    return clash_.empty() ? std::optional(rate_) : std::nullopt;
  }
  std::string rate_clash() const override { return clash_; }

  static constexpr std::byte kByte{7};
  std::uint32_t rate_;
  std::string clash_;
};

struct TellingTable : FakeTable {
  TellingTable(const std::string& name, std::uint32_t rate, const std::string& clash = {})
      : FakeTable({name, {bytes_field("x", {"a", "b"})}}) {
    fields_[0].name = "x";
    fields_[0].typed = std::make_shared<Telling>(rate, clash);
  }
  const std::vector<Field>& fields() const override { return fields_; }
  std::vector<Field> fields_{1};
};

TEST(Views, PassOnAllThatAColumnSays) {
  const TablePtr a = std::make_shared<TellingTable>("a.ark", 8000);
  const TablePtr b = std::make_shared<TellingTable>("b.ark", 16000);
  const TablePtr odd = std::make_shared<TellingTable>("c.ark", 8000, "these clash");
  const auto column = [](const TablePtr& table) { return table->fields().at(0).typed; };
  const TablePtr tables[] = {concatenate({a, a}), select_rows(odd, RecordMap::list({1, 0, 1})),
                             concatenate({a, odd}), concatenate({a, b})};
  for (const TablePtr& table : tables) {
    EXPECT_TRUE(column(table)->time_series());
    EXPECT_EQ(column(table)->text_length(1, 10), table == tables[1] ? 10U : 11U);
  }
  EXPECT_EQ(column(tables[0])->rate_hz(), 8000U);
  EXPECT_EQ(column(tables[0])->rate_clash(), "");
  EXPECT_EQ(column(tables[1])->rate_hz(), std::nullopt);
  EXPECT_EQ(column(tables[1])->rate_clash(), "these clash");
  EXPECT_EQ(column(tables[2])->rate_clash(), "these clash");
  EXPECT_EQ(column(tables[3])->rate_hz(), std::nullopt);
  EXPECT_EQ(column(tables[3])->rate_clash(),
            "those of b.ark have 16000 Hz, those of a.ark have 8000 Hz");
  // Declared to be of another shape, too.
  FieldChoices choices;
  choices.shape["x"] = {1, 3};
  std::string warned;
  lay_out("x", tables[1]->fields()[0], tables[1], choices,
          [&](const std::string& text) { warned += text; });
  EXPECT_NE(warned.find("these clash"), std::string::npos) << warned;
}

TEST(Concatenate, KnowsThatAllAreAlikeWhereEachPartDoes) {
  FakeField field = typed_field("t", "|u1", {{{2}, "ab"}});
  field.uniform = true;
  FakeField other = typed_field("t", "|u1", {{{3}, "abc"}});
  other.uniform = true;
  const auto uniform = [](std::vector<TablePtr> tables) {
    return find_field(*concatenate(std::move(tables)), "t")->typed->uniform();
  };
  const auto item = uniform({make_table(field), empty_table(), make_table(field)});
  ASSERT_TRUE(item);
  EXPECT_EQ(item->shape, Shape{2});
  EXPECT_FALSE(uniform({make_table(field), make_table(other)}));
  EXPECT_FALSE(uniform({make_table(field), make_table(bytes_field("x", {"a"}))}));

  const auto equal = [](const Strings& a, const Strings& b) {
    return concatenate({make_table(bytes_field("x", a)), make_table(bytes_field("x", b))})
        ->fields()
        .at(0)
        .bytes->equal_nbytes();
  };
  EXPECT_EQ(equal({"aa", "bb"}, {"cc"}), 2U);
  EXPECT_EQ(equal({"aa"}, {}), 2U);
  EXPECT_EQ(equal({"aa"}, {"b"}), std::nullopt);
  EXPECT_EQ(equal({}, {}), std::nullopt);
}

TEST(Concatenate, AnEmptyTableHasNothingToSay) {
  const TablePtr table = concatenate({empty_table(), keyed({"a"}, {"k"}), empty_table()});
  EXPECT_EQ(find_field(*table, "never"), nullptr);
  EXPECT_EQ(contents(*table, "x"), Strings{"a"});
  EXPECT_EQ(table->key_kind(), KeyKind::kText);
  const TablePtr all_empty = concatenate({empty_table(), empty_table()});
  EXPECT_EQ(all_empty->size(), 0U);
  EXPECT_NE(find_field(*all_empty, "never"), nullptr) << "the only ones to say anything";
}

TEST(Concatenate, HasKeysWhereAllHaveKeysOfOneKind) {
  const TablePtr texts = concatenate({keyed({"1", "2"}, {"a", "b"}), keyed({"3"}, {"c"})});
  ASSERT_EQ(texts->key_kind(), KeyKind::kText);
  EXPECT_EQ(texts->text_key(1), "b");
  EXPECT_EQ(texts->text_key(2), "c");
  const TablePtr numbers = concatenate({numbered({"1"}, {-4}), numbered({"3"}, {9})});
  ASSERT_EQ(numbers->key_kind(), KeyKind::kInteger);
  EXPECT_EQ(numbers->int_key(0), -4);
  EXPECT_EQ(numbers->int_key(1), 9);
}

TEST(Concatenate, HasNoKeysWhereTheyAreMixed) {
  const TablePtr text = keyed({"1"}, {"a"});
  const TablePtr number = numbered({"2"}, {2});
  const TablePtr none = make_table(bytes_field("x", {"3"}));
  std::vector<TablePtr> tables{text, number, none};
  std::sort(tables.begin(), tables.end());
  do {
    EXPECT_EQ(concatenate(tables)->key_kind(), KeyKind::kNone);
  } while (std::next_permutation(tables.begin(), tables.end()));
  EXPECT_EQ(concatenate({text, none, text})->key_kind(), KeyKind::kNone);
  EXPECT_EQ(concatenate({none, text})->key_kind(), KeyKind::kNone);
  EXPECT_EQ(concatenate({empty_table(KeyKind::kInteger), text})->key_kind(), KeyKind::kText);
}

TEST(Concatenate, RefusesAFieldThatIsBytesHereAndOfKnownTypeThere) {
  const auto refusal = refusal_of([] {
    concatenate({make_table(bytes_field("f", {"a"}), "raw"),
                 make_table(typed_field("f", "|u1", {{{1}, "a"}}), "known")});
  });
  EXPECT_EQ(refusal.kind, ErrorKind::kUnsupported);
  EXPECT_NE(refusal.text.find("known: its field f "), std::string::npos) << refusal.text;
  EXPECT_NE(refusal.text.find("in raw "), std::string::npos) << refusal.text;
}

TEST(Concatenate, PassesOnDamageAndChecksums) {
  FakeRecords damaged;
  damaged.name = "second";
  damaged.fields = {bytes_field("x", {"a", "b", "c"})};
  damaged.damage.emplace(1, fake_damage("b is bad"));
  damaged.checksums = true;
  damaged.failing = {2};
  const auto second = make_table(damaged);
  const TablePtr table = concatenate({make_table(bytes_field("x", {"0", "1"})), second});
  EXPECT_EQ(table->damaged_count(), 1U);
  EXPECT_EQ(table->damage(2), nullptr);
  ASSERT_NE(table->damage(3), nullptr);
  EXPECT_STREQ(table->damage(3)->error.what(), "b is bad");
  const ByteColumn& column = *table->fields().at(0).bytes;
  EXPECT_TRUE(strict_verifier().is_intact(column.guard(2)));
  EXPECT_FALSE(strict_verifier().is_intact(column.guard(4)));
  EXPECT_EQ(column.guard(4).checksums, second.get()) << "whose number it is counted by";
  EXPECT_EQ(column.guard(4).first, 2U);
  EXPECT_EQ(column.guard(0).checksums, nullptr);
  expect_runs(column);
}

// Records with and without the second field, damaged ones, of one size here and there.
std::shared_ptr<const FakeTable> random_table(std::mt19937& random, int number) {
  FakeRecords records;
  records.name = "table" + std::to_string(number);
  const std::size_t count = random() % 4 == 0 ? 0 : random() % 12;
  Strings x;
  FakeField typed = typed_field("t", "|u1", {});
  for (std::size_t i = 0; i < count; ++i) {
    x.push_back(
        std::string(random() % 4 == 0 ? random() % 4 : 3, static_cast<char>('a' + random() % 26)));
    typed.items.push_back({x.back(), DType::simple("|u1"), {x.back().size()}});
    typed.items.back().present = random() % 5 != 0;
    if (random() % 6 == 0) {
      records.damage.emplace(i, fake_damage("bad"));
    }
    records.text_keys.push_back(std::to_string(number) + "/" + std::to_string(i));
  }
  records.fields = {bytes_field("x", x)};
  if (random() % 3 != 0) {
    records.fields.push_back(std::move(typed));
  }
  records.key_kind = KeyKind::kText;
  records.checksums = random() % 2 == 0;
  return make_table(std::move(records));
}

Strings picked(const Strings& all, const std::vector<std::uint64_t>& rows) {
  Strings some;
  for (const std::uint64_t row : rows) {
    some.push_back(all[row]);
  }
  return some;
}

// The rows of `base` in this order, asked in every way there is.
void expect_rows(const RecordTable& view, const RecordTable& base,
                 const std::vector<std::uint64_t>& rows) {
  ASSERT_EQ(view.size(), rows.size());
  ASSERT_EQ(view.fields().size(), base.fields().size());
  std::uint64_t damaged = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(view.damage(i), base.damage(rows[i]));
    EXPECT_EQ(view.text_key(i), base.text_key(rows[i]));
    damaged += view.damage(i) != nullptr ? 1 : 0;
  }
  EXPECT_EQ(view.damaged_count(), damaged);
  for (const Field& field : base.fields()) {
    EXPECT_EQ(contents(view, field.name), picked(contents(base, field.name), rows)) << field.name;
  }
  for (std::size_t i = 0; i < base.stored().size(); ++i) {
    EXPECT_EQ(contents(*view.stored()[i].bytes), picked(contents(*base.stored()[i].bytes), rows));
  }
  expect_runs(*find_field(view, "x")->bytes);
}

TEST(Views, AreLikeANaiveModelAtRandom) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<TablePtr> tables;
    Strings x;
    Strings keys;
    for (int i = 0; i < 4; ++i) {
      tables.push_back(random_table(random, i));
      const Strings some = contents(*tables.back(), "x");
      x.insert(x.end(), some.begin(), some.end());
      for (std::uint64_t r = 0; r < tables.back()->size(); ++r) {
        keys.emplace_back(tables.back()->text_key(r));
      }
    }
    const TablePtr all = concatenate(tables);
    ASSERT_EQ(contents(*all, "x"), x);
    ASSERT_EQ(all->size(), keys.size());
    if (keys.empty()) {
      continue;
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(all->text_key(i), keys[i]);
    }
    expect_runs(*find_field(*all, "x")->bytes);

    std::vector<std::uint64_t> left_out;
    std::vector<std::uint64_t> kept;
    for (std::uint64_t i = 0; i < all->size(); ++i) {
      (random() % 4 == 0 ? left_out : kept).push_back(i);
    }
    std::shuffle(left_out.begin(), left_out.end(), random);
    const TablePtr remaining = leave_out(all, left_out);
    expect_rows(*remaining, *all, kept);

    // Some of these, in any order, some twice.
    std::vector<std::uint64_t> rows;
    for (std::size_t n = kept.empty() ? 0 : random() % 20; n > 0; --n) {
      rows.push_back(random() % kept.size());
    }
    expect_rows(*select_rows(remaining, RecordMap::list(rows)), *remaining, rows);
  }
}

TEST(LeaveOut, MayLeaveNothing) {
  const TablePtr table = leave_out(keyed({"a", "b"}, {"1", "2"}), {1, 0, 1});
  EXPECT_EQ(table->size(), 0U);
  EXPECT_EQ(table->fields().size(), 1U);
}

TEST(LeaveOut, RunsOverWhatIsLeftTogether) {
  const TablePtr table =
      leave_out(make_table(bytes_field("x", {"aa", "bb", "cc", "dd", "ee", "ff"})), {3});
  const ByteColumn& column = *table->fields().at(0).bytes;
  EXPECT_EQ(column.run(0), 3U);
  EXPECT_EQ(column.run(3), 2U);
  EXPECT_EQ(column.equal_nbytes(), 2U);
}

// Of files one after another each is a shard; what is selected keeps the shard it came from.
TEST(ShardStarts, FollowTheMap) {
  const auto table = [](std::size_t count) {
    return make_table(bytes_field("x", std::vector<std::string>(count, "a")));
  };
  using Starts = std::vector<std::uint64_t>;
  const TablePtr all = concatenate({table(3), table(0), table(2), table(4)});
  EXPECT_EQ(table(3)->shard_starts(), Starts{0});
  EXPECT_EQ(table(0)->shard_starts(), Starts{});
  EXPECT_EQ(all->shard_starts(), (Starts{0, 3, 5}));
  EXPECT_EQ(leave_out(all, {0, 3, 4})->shard_starts(), (Starts{0, 2}));
  EXPECT_EQ(select_rows(all, RecordMap::list({8, 0, 1, 6}))->shard_starts(), (Starts{0, 1, 3}));
}

}  // namespace
}  // namespace npyfs
