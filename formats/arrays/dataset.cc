// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "formats/arrays/computed_array.h"
#include "formats/arrays/join.h"
#include "formats/arrays/key_map.h"
#include "formats/arrays/layout.h"
#include "formats/arrays/names.h"
#include "formats/arrays/pickled_table.h"
#include "formats/arrays/store_attributes.h"
#include "formats/arrays/store_tree.h"
#include "formats/arrays/table_view.h"
#include "formats/arrays/view.h"
#include "formats/bytes/utf8.h"
#include "formats/extents.h"

namespace npyfs {

namespace {

using Warn = std::function<void(const std::string&)>;

// The sources of one split that were given with the same ARRAY (or with none), concatenated.
struct Member {
  std::string array;  // empty: all its fields, under their own names
  std::string text;
  std::string format;
  TablePtr table;
  bool permissive = false;
  std::string key_clash;  // which of its files disagree about keys, and how; empty: none do
};

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

std::vector<Member> gather_members(const std::vector<const OpenedSource*>& sources,
                                   const FieldChoices& choices, const Warn& warn) {
  struct Parts {
    const OpenedSource* first;
    std::vector<TablePtr> tables;
    bool permissive = false;
  };
  std::vector<Parts> parts;
  for (const OpenedSource* source : sources) {
    auto same = std::find_if(parts.begin(), parts.end(),
                             [&](const Parts& p) { return p.first->array == source->array; });
    if (same == parts.end()) {
      same = parts.insert(parts.end(), {source, {}, false});
    } else if (same->first->format != source->format) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("{} is {}, {} is {}: sources of one array must be of one format; "
                      "SPLIT/ARRAY= joins others",
                      same->first->text, same->first->format, source->text, source->format));
    }
    same->permissive = same->permissive || source->permissive;
    same->tables.insert(same->tables.end(), source->tables.begin(), source->tables.end());
  }
  std::vector<Member> members;
  for (Parts& p : parts) {
    std::string key_clash = find_key_clash(p.tables);
    TablePtr table =
        unpack_pickles(concatenate(std::move(p.tables)), choices, p.first->array, warn);
    members.push_back({p.first->array, p.first->text, p.first->format, std::move(table),
                       p.permissive, std::move(key_clash)});
  }
  return members;
}

void sort_unique(std::vector<std::uint64_t>& records) {
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end()), records.end());
}

// Looks for the records of one stored unit that fail, many at a time while all are intact.
class FailureSearch {
 public:
  FailureSearch(const DatasetOptions& options, std::vector<std::uint64_t>& failing,
                std::string& first_text)
      : options_(options), failing_(failing), first_text_(first_text) {}

  void add(std::uint64_t record, const Guard& guard) {
    const bool continues = guard.table == batch_.table &&
                           guard.first == batch_.first + batch_.count &&
                           record == first_record_ + batch_.count && batch_.count < kMaxBatch;
    if (continues && guard.count == 1) {
      ++batch_.count;
      return;
    }
    finish();
    batch_ = guard;
    first_record_ = record;
  }

  // To be called after the last record.
  void finish() {
    if (batch_.table != nullptr && fails(batch_)) {
      for (std::uint64_t i = 0; i < batch_.count; ++i) {
        if (fails({batch_.table, batch_.first + i, 1})) {
          failing_.push_back(first_record_ + i);
        }
      }
    }
    batch_ = {};
  }

 private:
  static constexpr std::uint64_t kMaxBatch = 4096;

  bool fails(const Guard& guard) const {
    try {
      options_.require_intact(guard);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      if (first_text_.empty()) {
        first_text_ = error.what();
      }
      return true;
    }
    return false;
  }

  const DatasetOptions& options_;
  std::vector<std::uint64_t>& failing_;
  std::string& first_text_;
  Guard batch_;
  std::uint64_t first_record_ = 0;
};

// With --verify=mount: the records that fail.
std::vector<std::uint64_t> find_failing(const RecordTable& table, const DatasetOptions& options,
                                        const Warn& warn) {
  std::vector<std::uint64_t> failing;
  std::string first;
  for (const StoredUnit& unit : table.stored()) {
    FailureSearch search(options, failing, first);
    for (std::uint64_t record = 0; record < table.size(); ++record) {
      if (table.damage(record) == nullptr) {
        search.add(record, unit.bytes->guard(record));
      }
    }
    search.finish();
  }
  sort_unique(failing);
  if (!failing.empty()) {
    warn(fmt::format("{} ({} of {} records fail)", first, failing.size(), table.size()));
  }
  return failing;
}

class SplitBuilder {
 public:
  SplitBuilder(std::string name, std::vector<Member> members, const DatasetOptions& options,
               const Warn& warn)
      : options_(options), warn_(warn), members_(std::move(members)) {
    split_.name = std::move(name);
  }

  // Every member gets the rows of the first, in its order. To be called first.
  void join_members() {
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
      members_[i].table = select_rows(members_[i].table, Rows(std::move(rows)));
    }
    if (!missing.empty()) {
      members_[0].table = leave_out(members_[0].table, missing);
    }
  }

  // Of joined members: those this split is to have. `name` is the split's from now on.
  void select(const std::string& name, const Rows& rows) {
    split_.name = name;
    for (Member& member : members_) {
      member.table = select_rows(member.table, rows);
    }
  }
  const Member& main_member() const { return members_.front(); }

  Split build() {
    select(split_.name, part_rows(main_member().table->size(), options_.part));
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

  const std::set<std::string>& names_seen() const { return names_seen_; }
  // The arrays that others' rows were given to.
  const std::set<std::string>& joined() const { return joined_; }
  // Of each field, where it is audio with one rate.
  const std::map<std::string, std::optional<std::uint32_t>>& rates() const { return rates_; }

 private:
  TablePtr mapped_keys(const std::string& map) const {
    for (std::size_t i = 1; i < members_.size(); ++i) {
      if (members_[i].array == map) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("--map: {} is itself joined, expected a text field of {} or a file",
                                map, members_[0].text));
      }
    }
    return map_keys(members_[0].table, map);
  }

  bool is_permissive(const Member& member) const {
    return options_.permissive || member.permissive;
  }

  // Of joined members: what is bad in one is left out of all, so that rows still belong together.
  void leave_out_known_damage() {
    std::vector<std::uint64_t> bad;
    for (const Member& member : members_) {
      if (options_.verify == Verify::kMount && options_.require_intact) {
        const auto failing = find_failing(*member.table, options_, warn_);
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

  void add_damaged(const RecordTable& table, std::vector<std::uint64_t>& bad) const {
    if (table.damaged_count() == 0) {
      return;
    }
    const std::size_t before = bad.size();
    for (std::uint64_t record = 0; record < table.size(); ++record) {
      if (const Damage* damage = table.damage(record)) {
        if (bad.size() == before) {
          warn_(fmt::format("{}; left out ({} records)", damage->error.what(),
                            table.damaged_count()));
        }
        bad.push_back(record);
      }
    }
  }

  void leave_out_of_all(const std::vector<std::uint64_t>& rows) {
    for (Member& member : members_) {
      member.table = leave_out(member.table, rows);
    }
  }

  // Keys that only some files have join nothing, and may not be dropped in silence.
  void settle_keys() {
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

  // `keyed`: the first member's records under the keys they were looked for by.
  void report_missing(const Member& member, const RecordTable& keyed,
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

  // False where records had to be left out, so that all must be laid out again.
  bool lay_out_all() {
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
          left_out.insert(laid.damage_text + "; left out");
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

  // What a member contributes: all its fields, or its main one under the name ARRAY.
  static std::vector<std::pair<std::string, const Field*>> fields_of(const Member& member) {
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

  std::string renamed(const std::string& field) const {
    const auto found = options_.fields.rename.find(field);
    return found == options_.fields.rename.end() ? field : found->second;
  }

  // `field` may be renamed; what is derived from it (x_offsets) follows.
  void add_array(const std::string& field, LaidOutArray array, const Member& member) {
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
    added.offsets = std::move(array.offsets);
    added.holds_offsets = array.holds_offsets;
    added.text_length = std::move(array.text_length);
  }

  void add_keys() {
    const Member& first = members_.front();
    if (ArrayPtr keys = keys_array(first.table)) {
      LaidOutArray array{"keys", std::move(keys)};
      if (first.table->key_kind() == KeyKind::kText) {
        array.text_length = [table = first.table](std::uint64_t record) {
          return std::optional(utf8_length(table->text_key(record)));
        };
      }
      add_array("keys", std::move(array), first);
    }
  }

  const DatasetOptions& options_;
  const Warn& warn_;
  std::vector<Member> members_;
  Split split_;
  std::map<std::string, std::string> taken_;  // array name -> what it is
  std::set<std::string> names_seen_;
  std::set<std::string> joined_;
  std::map<std::string, std::optional<std::uint32_t>> rates_;
};

template <typename Map>
void require_known(const Map& choices, const char* option, const std::set<std::string>& known,
                   const std::set<std::string>& stored = {}) {
  for (const auto& [name, choice] : choices) {
    if (known.count(name) == 0 && stored.count(name) != 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} {}=...: {} is an array of a store and shown as it is stored; the "
                              "option is for fields of records",
                              option, name, name));
    }
    if (known.count(name) == 0) {
      throw Error(ErrorKind::kUsage, fmt::format("{} {}=...: there is no field {}; there are: {}",
                                                 option, name, name, fmt::join(known, " ")));
    }
  }
}

// A choice that concerns nothing is a typing mistake. `stored` are the arrays of stores, `joined`
// those that are joined by key.
void check_choices(const DatasetOptions& options, const std::set<std::string>& known,
                   const std::set<std::string>& stored, const std::set<std::string>& joined) {
  const FieldChoices& fields = options.fields;
  require_known(fields.layout, "--layout", known, stored);
  require_known(fields.dtype, "--dtype", known, stored);
  require_known(fields.shape, "--shape", known, stored);
  require_known(fields.decode, "--decode", known, stored);
  for (const auto& [name, map] : options.maps) {
    if (joined.count(name) == 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--map {}={}: it is no array that is joined by key; there are: {}",
                              name, map, fmt::join(joined, " ")));
    }
  }
  std::set<std::string> renamable = known;
  renamable.insert("keys");
  renamable.insert(stored.begin(), stored.end());
  require_known(fields.rename, "--name", renamable);
}

using Rates = std::map<std::string, std::optional<std::uint32_t>>;

// Of fields of one name in several splits, the rate on which all agree.
void merge_rates(const Rates& more, Rates& rates) {
  for (const auto& [name, rate] : more) {
    const auto [at, is_new] = rates.emplace(name, rate);
    if (!is_new && at->second != rate) {
      at->second.reset();
    }
  }
}

// `attributes` and what is known of records and from the command line.
Dict add_attributes(Dict attributes, const DatasetOptions& options, const Rates& rates) {
  for (const auto& [name, rate] : rates) {
    if (rate) {
      set_value(attributes, fmt::format("samplerate_{}_Hz", name),
                Value{static_cast<std::int64_t>(*rate)});
    }
  }
  if (options.class_names) {
    List names;
    for (const std::string& name : *options.class_names) {
      names.push_back(Value{name});
    }
    set_value(attributes, "class_names", Value{std::move(names)});
  }
  for (const auto& [name, value] : options.attributes) {
    set_value(attributes, name, value);
  }
  return attributes;
}

// The split itself, or the splits that the rule makes of it.
std::vector<SplitBuilder> cut(SplitBuilder joined, const SplitRule& rule) {
  if (rule.empty()) {
    return {std::move(joined)};
  }
  const Member& main = joined.main_member();
  std::vector<SplitBuilder> builders;
  for (const NamedRows& part : cut_splits(*main.table, rule, main.text)) {
    builders.push_back(joined);
    builders.back().select(part.split, part.rows);
  }
  return builders;
}

void require_cuttable(const DatasetOptions& options, const std::vector<std::string>& splits) {
  if (options.part.rank >= options.part.world_size) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--rank {} --world-size {}: expected a rank below the world size",
                            options.part.rank, options.part.world_size));
  }
  if (!options.split_rule.shares.empty() && !options.split_rule.lists.empty()) {
    throw Error(ErrorKind::kUsage, "--split and --split-list: expected one of them");
  }
  if (!options.split_rule.empty() && splits.size() > 1) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--split, --split-list: the data set has the splits {} already, "
                            "expected one that is to be cut",
                            fmt::join(splits, ", ")));
  }
}

// Builds the splits one by one.
class DatasetBuilder {
 public:
  DatasetBuilder(const DatasetOptions& options, const Warn& warn)
      : options_(options), warn_(warn) {}

  // `sources` are those of the split `name`, in order; an empty name is the mount's top.
  void add(const std::string& name, const std::vector<const OpenedSource*>& sources) {
    const auto is_table = [](const OpenedSource* source) { return source->stores.empty(); };
    if (options_.split_rule.empty() && std::none_of(sources.begin(), sources.end(), is_table)) {
      add_stores(name, sources);
      return;
    }
    std::vector<OpenedSource> tables;
    for (const OpenedSource* source : sources) {
      OpenedSource& table = tables.emplace_back(*source);
      if (!is_table(source)) {
        table.tables = {rows_of_store(*source)};
      }
    }
    std::vector<const OpenedSource*> pointers;
    for (const OpenedSource& table : tables) {
      pointers.push_back(&table);
    }
    SplitBuilder joined(name, gather_members(pointers, options_.fields, warn_), options_, warn_);
    joined.join_members();
    joined_.insert(joined.joined().begin(), joined.joined().end());
    for (SplitBuilder& builder : cut(std::move(joined), options_.split_rule)) {
      dataset_.splits.push_back(builder.build());
      known_.insert(builder.names_seen().begin(), builder.names_seen().end());
      merge_rates(builder.rates(), rates_);
      records_ += dataset_.splits.back().records->size();
    }
  }

  Dataset finish(const std::vector<OpenedSource>& sources) {
    if (records_ > 0 || !stored_.empty()) {
      check_choices(options_, known_, stored_, joined_);
    }
    dataset_.pad_value = options_.fields.pad_value;
    dataset_.attributes = gather_attributes(sources, warn_);
    if (options_.part.world_size > 1) {
      cut_stores();
    }
    dataset_.attributes = add_attributes(std::move(dataset_.attributes), options_, rates_);
    require_distinct_splits();
    return std::move(dataset_);
  }

 private:
  void add_stores(const std::string& name, const std::vector<const OpenedSource*>& sources) {
    StoreTree tree = build_store_tree(sources, name.empty(), options_, warn_);
    stored_.insert(tree.names_seen.begin(), tree.names_seen.end());
    if (!name.empty()) {
      tree.split.name = name;
      dataset_.splits.push_back(std::move(tree.split));
      return;
    }
    dataset_.arrays = std::move(tree.split.arrays);
    std::move(tree.split.groups.begin(), tree.split.groups.end(),
              std::back_inserter(dataset_.splits));
  }

  // Records are cut already; arrays of stores are seen as a view of the part sees them.
  void cut_stores() {
    Dataset stores;
    stores.attributes = std::move(dataset_.attributes);
    stores.arrays = std::move(dataset_.arrays);
    const auto is_store = [](const Split& split) { return split.records == nullptr; };
    std::copy_if(dataset_.splits.begin(), dataset_.splits.end(), std::back_inserter(stores.splits),
                 is_store);
    ViewContext context;
    context.left_out = [&](const Error& why) {
      if (!options_.permissive) {
        throw Error(why.kind(), fmt::format("--rank: {}", why.what()));
      }
      warn_(fmt::format("{}; left out", why.what()));
    };
    context.warn = warn_;
    stores = make_view(stores, {std::nullopt, options_.part, false}, context);
    dataset_.attributes = std::move(stores.attributes);
    dataset_.arrays = std::move(stores.arrays);
    auto next = stores.splits.begin();
    for (Split& split : dataset_.splits) {
      if (is_store(split)) {
        split = std::move(*next++);
      }
    }
  }

  // A group of one store may be called as the split that another source was given to.
  void require_distinct_splits() const {
    std::set<std::string> names;
    for (const Split& split : dataset_.splits) {
      if (!names.insert(split.name).second) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("two sources make the split {}, one of them by its groups; "
                                "SPLIT= puts a store elsewhere",
                                split.name));
      }
    }
  }

  const DatasetOptions& options_;
  const Warn& warn_;
  Dataset dataset_;
  std::set<std::string> known_;   // fields of records
  std::set<std::string> stored_;  // arrays of stores
  std::set<std::string> joined_;  // arrays that are joined by key
  std::uint64_t records_ = 0;
  Rates rates_;
};

// Where the source's arrays go.
const std::string& split_of(const OpenedSource& source) {
  const bool one_array = !source.stores.empty() && source.split.empty() &&
                         std::all_of(source.stores.begin(), source.stores.end(), [](const auto& s) {
                           const auto& arrays = s->root.arrays;
                           return arrays.size() == 1 && arrays.front().name.empty();
                         });
  return one_array ? source.array_split : source.split;
}

void visit_arrays(const std::string& prefix, const std::vector<NamedArray>& arrays,
                  const std::vector<Split>& groups,
                  const std::function<void(const std::string&, const NamedArray&)>& visit) {
  for (const NamedArray& array : arrays) {
    visit(prefix + array.name, array);
  }
  for (const Split& group : groups) {
    visit_arrays(prefix + group.name + "/", group.arrays, group.groups, visit);
  }
}

}  // namespace

void for_each_array(const Dataset& dataset,
                    const std::function<void(const std::string&, const NamedArray&)>& visit) {
  visit_arrays("", dataset.arrays, dataset.splits, visit);
}

Dataset build_dataset(const std::vector<OpenedSource>& sources, const DatasetOptions& options,
                      const Warn& warn) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const OpenedSource*>> of_split;
  for (const OpenedSource& source : sources) {
    const std::string& split = split_of(source);
    if (of_split.count(split) == 0) {
      order.push_back(split);
    }
    of_split[split].push_back(&source);
  }
  require_cuttable(options, order);
  DatasetBuilder builder(options, warn);
  for (const std::string& name : order) {
    builder.add(name, of_split[name]);
  }
  return builder.finish(sources);
}

}  // namespace npyfs
