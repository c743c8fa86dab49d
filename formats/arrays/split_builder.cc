// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/split_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/arrays/key_items.h"
#include "formats/arrays/names.h"
#include "formats/arrays/pickled_table.h"
#include "formats/arrays/sources_by_array.h"
#include "formats/bytes/fault_tally.h"
#include "formats/extents.h"
#include "formats/tables/composed_table.h"
#include "formats/tables/find_damage.h"
#include "formats/tables/join.h"
#include "formats/tables/key_map.h"

namespace npyfs {

namespace {

using Warn = std::function<void(const std::string&)>;
using Member = SplitMember;

const char* keys_text(const RecordTable& table) {
  switch (table.key_kind()) {
    case KeyKind::kNone:
      break;
    case KeyKind::kInteger:
      return "integer keys";
    case KeyKind::kText:
      return "text keys";
  }
  return "no keys";
}

// An empty file has nothing to say about keys.
std::string find_key_clash(const std::vector<TablePtr>& tables) {
  const RecordTable* first = nullptr;
  for (const TablePtr& table : tables) {
    if (table->size() == 0) {
      continue;
    }
    if (first == nullptr) {
      first = table.get();
    } else if (table->key_kind() != first->key_kind()) {
      return fmt::format("{}: its records have {}, those of {} have {}",
                         printable(table->sources().front()->name()), keys_text(*table),
                         printable(first->sources().front()->name()), keys_text(*first));
    }
  }
  return {};
}

void sort_unique(std::vector<std::uint64_t>& records) {
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end()), records.end());
}

}  // namespace

std::vector<SplitMember> gather_members(const std::vector<const OpenedSource*>& sources,
                                        const FieldChoices& choices, const Warn& warn) {
  std::vector<SplitMember> members;
  for (const auto& part : sources_by_array(sources)) {
    std::vector<TablePtr> tables;
    bool permissive = false;
    for (const OpenedSource* source : part) {
      permissive = permissive || source->permissive;
      tables.insert(tables.end(), source->tables.begin(), source->tables.end());
    }
    const OpenedSource& first = *part.front();
    std::string key_clash = find_key_clash(tables);
    TablePtr table = unpack_pickles(concatenate(std::move(tables)), choices, first.array, warn);
    members.push_back({first.array, first.text, first.format, std::move(table), permissive,
                       std::move(key_clash)});
  }
  return members;
}

void SplitBuilder::join_members() {
  settle_keys();
  std::vector<Join> joins(members_.size());
  std::vector<std::uint64_t> missing;
  for (std::size_t i = 1; i < members_.size(); ++i) {
    const auto map = options_.maps.find(members_[i].array);
    const auto keyed = map != options_.maps.end() ? mapped_keys(map->second) : members_[0].table;
    joined_.insert(members_[i].array);
    joins[i] = join_rows(*keyed, *members_[i].table, members_[0].text, members_[i].text);
    if (!joins[i].missing.empty()) {
      report_missing(members_[i], *keyed, joins[i].missing);
      missing.insert(missing.end(), joins[i].missing.begin(), joins[i].missing.end());
    }
  }
  if (members_.size() == 1) {
    return;
  }
  sort_unique(missing);
  for (std::size_t i = 1; i < members_.size(); ++i) {
    std::vector<std::uint64_t> rows;
    rows.reserve(joins[i].rows.size() - missing.size());
    for (std::uint64_t record = 0; record < joins[i].rows.size(); ++record) {
      if (!std::binary_search(missing.begin(), missing.end(), record)) {
        rows.push_back(joins[i].rows[record]);
      }
    }
    members_[i].table = select_rows(members_[i].table, RecordMap::list(rows));
  }
  if (!missing.empty()) {
    members_[0].table = leave_out(members_[0].table, missing);
  }
}

void SplitBuilder::select(const std::string& name, const RecordMap& rows) {
  split_.name = name;
  for (Member& member : members_) {
    member.table = select_rows(member.table, rows);
  }
}

Split SplitBuilder::build() {
  select(split_.name, view_map(before_layout(options_.view), main_member().table->size()));
  leave_out_known_damage();
  // Laying out may find more damage; with --permissive that is left out of all members alike.
  while (!lay_out_all()) {
  }
  add_keys();
  std::sort(split_.arrays.begin(), split_.arrays.end(),
            [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  split_.records = members_.front().table;
  return std::move(split_);
}

TablePtr SplitBuilder::mapped_keys(const std::string& map) const {
  for (std::size_t i = 1; i < members_.size(); ++i) {
    if (members_[i].array == map) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--map: {} is itself joined, expected a text field of {} or a file",
                              map, members_[0].text));
    }
  }
  return map_keys(members_[0].table, map, *options_.fields.verifier);
}

bool SplitBuilder::is_permissive(const Member& member) const {
  return options_.permissive || member.permissive;
}

void SplitBuilder::leave_out_known_damage() {
  std::vector<std::uint64_t> bad;
  for (const Member& member : members_) {
    if (options_.verify == Verify::kMount) {
      const auto failing = find_failing(*member.table, *options_.fields.verifier, warn_);
      if (is_permissive(member)) {
        bad.insert(bad.end(), failing.begin(), failing.end());
      }
    }
    if (is_permissive(member)) {
      add_damaged(*member.table, bad);
    }
  }
  if (!bad.empty()) {
    leave_out_of_all(bad);
  }
}

void SplitBuilder::add_damaged(const RecordTable& table, std::vector<std::uint64_t>& bad) const {
  if (table.damaged_count() == 0) {
    return;
  }
  FaultTally faults("records", "left out");
  for (std::uint64_t record = 0; record < table.size(); ++record) {
    if (const Damage* damage = table.damage(record)) {
      faults.add(damage->error);
      bad.push_back(record);
    }
  }
  faults.tell(warn_);
}

void SplitBuilder::leave_out_of_all(const std::vector<std::uint64_t>& rows) {
  for (Member& member : members_) {
    member.table = leave_out(member.table, rows);
  }
}

void SplitBuilder::settle_keys() {
  for (const Member& member : members_) {
    if (!member.key_clash.empty() && members_.size() > 1) {
      throw Error(ErrorKind::kUnsupported,
                  member.key_clash + "; such files cannot be joined with others");
    }
    if (!member.key_clash.empty()) {
      warn_(member.key_clash + "; no keys are shown");
    }
  }
  const bool by_key = std::any_of(members_.begin() + 1, members_.end(), [](const Member& m) {
    return m.table->key_kind() != KeyKind::kNone;
  });
  if (by_key) {
    require_unique_keys(*members_[0].table, members_[0].text);
  }
}

void SplitBuilder::report_missing(const Member& member, const RecordTable& keyed,
                                  const std::vector<std::uint64_t>& missing) const {
  const RecordTable& first = *members_[0].table;
  const std::string mapped =
      &keyed != &first ? fmt::format(" ({} by --map)", printable(keyed.text_key(missing.front())))
                       : std::string();
  const std::string more =
      missing.size() > 1 ? fmt::format(" (and {} more)", missing.size() - 1) : std::string();
  const std::string text =
      fmt::format("{}: it lacks {}{} of {}{}", member.text, record_name(first, missing.front()),
                  mapped, members_[0].text, more);
  if (!is_permissive(member)) {
    throw Error(ErrorKind::kCorrupt, text + "; --permissive leaves such records out");
  }
  warn_(text + "; left out");
}

bool SplitBuilder::lay_out_all() {
  split_.arrays.clear();
  taken_.clear();
  std::vector<std::uint64_t> damaged;
  // With --permissive a layout that will be repeated is silent but for what made it so.
  std::vector<std::string> said;
  std::set<std::string> left_out;
  const bool any_permissive =
      std::any_of(members_.begin(), members_.end(),
                  [&](const Member& member) { return is_permissive(member); });
  const Warn remember = [&](const std::string& text) { said.push_back(text); };
  for (const Member& member : members_) {
    const auto fields = fields_of(member);
    for (const auto& [name, field] : fields) {
      names_seen_.insert(name);
      LaidOutField laid =
          lay_out(name, *field, member.table, options_.fields, any_permissive ? remember : warn_);
      if (is_permissive(member) && !laid.damaged.empty()) {
        damaged.insert(damaged.end(), laid.damaged.begin(), laid.damaged.end());
        for (const std::string& text : laid.damage_texts) {
          left_out.insert(text + "; left out");
        }
      }
      if (laid.rate_hz || !laid.arrays.empty()) {
        rates_[renamed(name)] = laid.rate_hz;
      }
      for (LaidOutArray& array : laid.arrays) {
        add_array(name, std::move(array), member);
      }
    }
  }
  if (damaged.empty()) {
    std::for_each(said.begin(), said.end(), warn_);
    return true;
  }
  std::for_each(left_out.begin(), left_out.end(), warn_);
  leave_out_of_all(damaged);
  return false;
}

std::vector<std::pair<std::string, const Field*>> SplitBuilder::fields_of(const Member& member) {
  std::vector<std::pair<std::string, const Field*>> chosen;
  const auto& fields = member.table->fields();
  if (member.array.empty()) {
    for (const Field& field : fields) {
      chosen.emplace_back(field.name, &field);
    }
    return chosen;
  }
  auto main = std::find_if(fields.begin(), fields.end(),
                           [](const Field& field) { return field.name == "x"; });
  if (main == fields.end()) {
    main = fields.begin();
  }
  if (main == fields.end()) {
    throw file_error(ErrorKind::kUnsupported, member.text, "it has no field to join");
  }
  chosen.emplace_back(member.array, &*main);
  for (const Field& field : fields) {
    if (field.companion && field.name.starts_with(main->name)) {
      chosen.emplace_back(member.array + field.name.substr(main->name.size()), &field);
    }
  }
  return chosen;
}

std::string SplitBuilder::renamed(const std::string& field) const {
  const auto found = options_.fields.rename.find(field);
  return found == options_.fields.rename.end() ? field : found->second;
}

void SplitBuilder::add_array(const std::string& field, LaidOutArray array, const Member& member) {
  const std::string plain = renamed(field) + array.name.substr(field.size());
  const std::string name = escape_name(plain);
  const std::string source = fmt::format("field {} of {}", field, member.text);
  const auto [at, is_new] = taken_.emplace(name, source);
  if (!is_new) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{}.npy would be both {} and {}; --name {}=OTHER renames one", name,
                            at->second, source, field));
  }
  if (shorten_name(name, 4) != name) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("{} is longer than a file name may be; --name renames it", source));
  }
  NamedArray& added = split_.arrays.emplace_back();
  added.name = name;
  added.array = std::move(array.array);
  added.format = member.format;
  added.records = member.table->size();
  added.sources = member.table->sources();
  added.recipe = std::move(array.recipe);
}

void SplitBuilder::add_keys() {
  const Member& first = members_.front();
  if (ItemsPtr keys = key_items(first.table)) {
    ArrayRecipe recipe = stacked(std::move(keys));
    ArrayPtr array = make_record_array(recipe);
    add_array("keys", {"keys", std::move(array), std::move(recipe)}, first);
  }
}

}  // namespace npyfs
