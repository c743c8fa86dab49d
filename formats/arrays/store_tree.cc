// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/store_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "formats/arrays/names.h"
#include "formats/arrays/ragged.h"
#include "formats/arrays/row_column.h"
#include "formats/arrays/sources_by_array.h"
#include "formats/arrays/stored_array.h"
#include "formats/bytes/value_access.h"
#include "formats/registry.h"
#include "formats/tables/find_damage.h"

namespace npyfs {

namespace {

using Warn = std::function<void(const std::string&)>;

constexpr const char* kMainName = "x";

template <typename All>
auto find_named(All& all, const std::string& name) {
  return std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
}

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

const std::string& shown_name(const StoredArray& array) {
  static const std::string kMain = kMainName;
  return array.name.empty() ? kMain : array.name;
}

// Appends stores to the first one, group by group.
class Appender {
 public:
  // `first` is what messages call it.
  Appender(Group& all, std::string first, const Verifier& verifier)
      : all_(all), first_(std::move(first)), verifier_(verifier) {}

  void append(const Group& more, const std::string& name) {
    more_ = name;
    more_attributes_ = &more.attributes;
    append(all_, more, "");
  }

  // To be called after the last append(), once.
  void finish() { finish(all_, ""); }

 private:
  void append(Group& all, const Group& more, const std::string& path) {
    require_same_arrays(all, more, path);
    append_offsets(all, more, path);
    for (const StoredArray& array : more.arrays) {
      require_same_meaning(array.name, path);
      StoredArray& same = *find_named(all.arrays, array.name);
      same.parts.insert(same.parts.end(), array.parts.begin(), array.parts.end());
      same.sources.insert(same.sources.end(), array.sources.begin(), array.sources.end());
    }
    for (const Group& group : more.groups) {
      const auto same = find_named(all.groups, group.name);
      if (same == all.groups.end()) {
        all.groups.push_back(group);
      } else {
        append(*same, group, below(path, group.name));
      }
    }
  }

  // The records of ragged arrays begin behind the rows before. To be called while `all` is without
  // what is in `more`.
  void append_offsets(const Group& all, const Group& more, const std::string& path) {
    for (const StoredArray& values : more.arrays) {
      const StoredArray* own = find_offsets(more, values.name);
      const StoredArray* before = find_offsets(all, values.name);
      if (own == nullptr || before == nullptr) {
        continue;
      }
      const std::string name = below(path, values.name);
      const auto [at, is_new] = offsets_.try_emplace(below(path, own->name));
      std::vector<std::int64_t>& offsets = at->second;
      if (is_new) {
        offsets = first_offsets(
            *make_ragged_pair(*find_named(all.arrays, values.name), *before, name, verifier_));
      }
      if (!offsets.empty()) {
        const OffsetsPtr added = read_offsets(*make_ragged_pair(values, *own, name, verifier_));
        std::transform(added->begin() + 1, added->end(), std::back_inserter(offsets),
                       [rows = offsets.back()](std::int64_t offset) { return rows + offset; });
      }
    }
  }

  // Nothing if the numbers are not valid offsets: then this is an ordinary array.
  static std::vector<std::int64_t> first_offsets(const RaggedPair& pair) {
    try {
      return *read_offsets(pair);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUnsupported) {
        throw;
      }
      return {};
    }
  }

  void finish(Group& group, const std::string& path) const {
    for (StoredArray& array : group.arrays) {
      const auto found = offsets_.find(below(path, array.name));
      if (found != offsets_.end() && !found->second.empty()) {
        array.parts = {offsets_part(found->second, array.sources.front()->name())};
      }
    }
    for (Group& inner : group.groups) {
      finish(inner, below(path, inner.name));
    }
  }

  // Without this check, labels of other classes or samples of another rate would be joined in
  // silence.
  void require_same_meaning(const std::string& array, const std::string& path) const {
    for (const RowAttributes::Common& common : row_attributes().common) {
      const Value* before =
          common.array == array ? find_value(all_.attributes, common.attribute) : nullptr;
      const Value* own = find_value(*more_attributes_, common.attribute);
      if (before != nullptr && own != nullptr && print_json(*before) != print_json(*own)) {
        throw file_error(
            ErrorKind::kUnsupported, more_,
            fmt::format("its attribute {} is {}, expected {} as {} has it, where {} of "
                        "the two is to stand one after another",
                        common.attribute, brief_json(*own), brief_json(*before), printable(first_),
                        printable(below(path, array))));
      }
    }
  }

  void require_same_arrays(const Group& all, const Group& more, const std::string& path) const {
    const auto require = [&](const Group& from, const Group& in, const std::string& from_name,
                             const std::string& in_name) {
      for (const StoredArray& array : from.arrays) {
        const bool there = std::any_of(in.arrays.begin(), in.arrays.end(),
                                       [&](const auto& other) { return other.name == array.name; });
        if (!there) {
          throw file_error(
              ErrorKind::kUnsupported, in_name,
              fmt::format("it has no array {}, which {} has, so the two cannot stand "
                          "one after another; give them to different splits",
                          printable(below(path, shown_name(array))), printable(from_name)));
        }
      }
    };
    require(all, more, first_, more_);
    require(more, all, more_, first_);
  }

  Group& all_;
  std::string first_;
  const Verifier& verifier_;  // with which offsets are read
  std::string more_;
  const Dict* more_attributes_ = nullptr;
  // Where the records of ragged arrays begin, by the path of the array that will say so.
  std::map<std::string, std::vector<std::int64_t>> offsets_;
};

// The sources of one ARRAY (or of none), as one store.
struct Member {
  std::string array;
  std::string text;
  std::string format;
  Group root;
};

Group concatenate_sources(const std::vector<const OpenedSource*>& sources,
                          const Verifier& verifier) {
  std::vector<StorePtr> stores;
  std::vector<std::string> names;
  for (const OpenedSource* source : sources) {
    for (const StorePtr& store : source->stores) {
      stores.push_back(store);
      names.push_back(store->sources.empty() ? source->text : store->sources.front()->name());
    }
  }
  return concatenate_stores(stores, names, verifier);
}

std::vector<Member> gather_members(const std::vector<const OpenedSource*>& sources,
                                   const Verifier& verifier) {
  std::vector<Member> members;
  for (const auto& part : sources_by_array(sources)) {
    const OpenedSource& first = *part.front();
    members.push_back({first.array, first.text, first.format, concatenate_sources(part, verifier)});
  }
  return members;
}

const StoredArray& require_main_array(const Group& root, const std::string& text) {
  const StoredArray* main = main_array(root);
  if (main != nullptr) {
    return *main;
  }
  std::string names;
  for (const StoredArray& array : root.arrays) {
    names += " " + printable(shown_name(array));
  }
  throw file_error(ErrorKind::kUnsupported, text,
                   fmt::format("none of its arrays is x or the only one, expected a store that "
                               "joins with one array; at its root there are:{}",
                               names.empty() ? " none" : names));
}

// The array whose offsets `name` is; empty where there is none.
std::string values_of_offsets(const Group& group, const std::string& name) {
  if (!name.ends_with(kOffsetsEnd)) {
    return {};
  }
  std::string values = name.substr(0, name.size() - kOffsetsEnd.size());
  return find_offsets(group, values) != nullptr ? values : std::string();
}

// Names arrays and groups as files, depth first.
class TreeBuilder {
 public:
  TreeBuilder(const DatasetOptions& options, const Warn& warn) : options_(options), warn_(warn) {}

  // `path` is that of the directory in the mount, empty at its root.
  Split build(const Group& group, const std::string& format, const std::string& path) {
    Split split;
    split.attributes = group.attributes;
    std::map<std::string, std::string> taken = reserved_names(path);
    for (const StoredArray& array : group.arrays) {
      add_array(group, array, format, path, taken, split);
    }
    for (const Group& inner : group.groups) {
      add_group(inner, format, path, taken, split);
    }
    sort_by_name(split.arrays);
    sort_by_name(split.groups);
    return split;
  }

  const std::set<std::string>& names_seen() const { return names_seen_; }

 private:
  static constexpr const char* kAttributes = "the attributes";

  static std::map<std::string, std::string> reserved_names(const std::string& path) {
    if (!path.empty()) {
      return {{"attrs.json", kAttributes}};
    }
    return {{"attrs.json", kAttributes}, {"attrs.npy", kAttributes}, {".npyfs", "the status"}};
  }

  template <typename Named>
  static void sort_by_name(std::vector<Named>& all) {
    std::sort(all.begin(), all.end(),
              [](const Named& a, const Named& b) { return a.name < b.name; });
  }

  // An array that is derived from a renamed one gets the new name, too.
  std::string renamed(const std::string& name, const std::string& values) const {
    const auto& names = options_.fields.rename;
    if (const auto own = names.find(name); own != names.end()) {
      return own->second;
    }
    const auto followed = names.find(values);
    return followed != names.end() ? followed->second + std::string(kOffsetsEnd) : name;
  }

  // One for both arrays of the pair; null for an array that is not ragged.
  std::shared_ptr<const RaggedPair> pair_of(const Group& group, const std::string& values,
                                            const std::string& path) {
    const StoredArray* offsets = find_offsets(group, values);
    if (offsets == nullptr) {
      return nullptr;
    }
    std::shared_ptr<const RaggedPair>& pair = pairs_[offsets];
    if (pair == nullptr) {
      pair = make_ragged_pair(*find_named(group.arrays, values), *offsets, below(path, values),
                              *options_.fields.verifier);
    }
    return pair;
  }

  void add_array(const Group& group, const StoredArray& stored, const std::string& format,
                 const std::string& path, std::map<std::string, std::string>& taken, Split& split) {
    const std::string& plain = shown_name(stored);
    names_seen_.insert(plain);
    const std::string values = values_of_offsets(group, plain);
    const std::string shown = renamed(plain, values);
    const bool is_renamed = shown != plain;
    const std::string name = escape_name(shown);
    const std::string what = fmt::format("array {}", printable(below(path, plain)));
    if (is_renamed && taken.count(name + ".npy") != 0) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("{}.npy would be both {} and {}; --name {}=OTHER renames one",
                              printable(below(path, name)), taken[name + ".npy"], what, plain));
    }
    if (!take(name + ".npy", what, taken) || !intact(stored, what)) {
      return;
    }
    NamedArray named;
    named.name = name;
    named.array = make_stored_array(stored, below(path, plain));
    named.format = format;
    named.sources = stored.sources;
    named.whole = whole_npy(stored);
    named.holds_offsets = !values.empty();
    named.pair = pair_of(group, values.empty() ? plain : values, path);
    named.records = row_count(*named.array);
    if (stored.attributes.empty() || take(name + ".attrs.json", kAttributes, taken)) {
      named.attributes = stored.attributes;
    }
    split.arrays.push_back(std::move(named));
  }

  void add_group(const Group& group, const std::string& format, const std::string& path,
                 std::map<std::string, std::string>& taken, Split& split) {
    const std::string name = escape_name(group.name);
    if (!take(name, fmt::format("group {}", printable(below(path, group.name))), taken)) {
      return;
    }
    Split inner = build(group, format, below(path, name));
    inner.name = name;
    split.groups.push_back(std::move(inner));
  }

  // Whether `file` is free in its directory, and from now on it is taken; else a warning was given.
  bool take(const std::string& file, const std::string& what,
            std::map<std::string, std::string>& taken) const {
    if (shorten_name(file, 0) != file) {
      warn_(fmt::format("{} is left out: its name is longer than a file's may be", what));
      return false;
    }
    const auto [at, is_new] = taken.emplace(file, what);
    if (!is_new) {
      warn_(fmt::format("{} is left out: {} is the name of {}", what, printable(file), at->second));
    }
    return is_new;
  }

  // With --verify=mount: whether the array is to be shown.
  bool intact(const StoredArray& stored, const std::string& what) const {
    if (options_.verify != Verify::kMount) {
      return true;
    }
    FoundDamage damage;
    try {
      damage = find_damage(stored, *options_.fields.verifier);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTooLarge || !options_.permissive) {
        throw;
      }
      warn_(fmt::format("{}; {} is left out", error.what(), what));
      return false;
    }
    if (damage.faults.count() == 0) {
      return true;
    }
    const std::string outcome = options_.permissive ? fmt::format("; {} is left out", what) : "";
    damage.faults.for_each([&](const std::string& text, std::uint64_t count) {
      warn_(text +
            (damage.checked > 1
                 ? fmt::format(" ({} of {} chunks of {} fail)", count, damage.checked, what)
                 : "") +
            outcome);
    });
    return !options_.permissive;
  }

  const DatasetOptions& options_;
  const Warn& warn_;
  std::set<std::string> names_seen_;
  std::map<const StoredArray*, std::shared_ptr<const RaggedPair>> pairs_;  // by the offsets
};

std::uint64_t joinable_rows(const StoredArray& stored, const std::string& text) {
  const ArrayPtr array = make_stored_array(stored, shown_name(stored));
  if (array->shape().empty()) {
    throw file_error(ErrorKind::kUnsupported, text,
                     "its array has no axis, so it has no rows to be joined");
  }
  return row_count(*array);
}

// A record for each row, or, where the array is ragged, for each that its offsets tell.
TableField rows_of_array(const Group& root, const StoredArray& stored, const OpenedSource& source,
                         const Verifier& verifier) {
  const std::string name = source.array.empty() ? shown_name(stored) : kMainName;
  joinable_rows(stored, source.text);
  if (const StoredArray* offsets = find_offsets(root, stored.name)) {
    const auto pair = make_ragged_pair(stored, *offsets, name, verifier);
    return {name, make_row_column(pair->values, read_offsets(*pair))};
  }
  return {name, make_row_column(make_stored_array(stored, name, true))};
}

// The members' main arrays, under their names, beside the arrays of the one without a name.
Group join_members(std::vector<Member> members) {
  std::optional<std::uint64_t> rows;
  Group joined;
  for (Member& member : members) {
    if (members.size() > 1) {
      const std::uint64_t own =
          joinable_rows(require_main_array(member.root, member.text), member.text);
      if (rows && *rows != own) {
        throw file_error(
            ErrorKind::kUnsupported, member.text,
            fmt::format("it has {} rows, expected the {} of {}", own, *rows, members.front().text));
      }
      rows = own;
    }
    if (member.array.empty()) {
      joined.arrays.insert(joined.arrays.end(), member.root.arrays.begin(),
                           member.root.arrays.end());
      joined.groups = std::move(member.root.groups);
      // A store that is one array keeps no attributes here: they are the mount's.
      const bool is_one_array =
          member.root.arrays.size() == 1 && member.root.arrays[0].name.empty();
      joined.attributes = is_one_array ? Dict() : std::move(member.root.attributes);
      continue;
    }
    StoredArray array = require_main_array(member.root, member.text);
    array.name = member.array;
    joined.arrays.push_back(std::move(array));
  }
  return joined;
}

void require_distinct(const Group& joined) {
  std::set<std::string> names;
  for (const StoredArray& array : joined.arrays) {
    if (!names.insert(shown_name(array)).second) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("two sources give the array {}; SPLIT/ARRAY= takes another name",
                              shown_name(array)));
    }
  }
}

}  // namespace

const StoredArray* main_array(const Group& root) {
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(root.arrays.begin(), root.arrays.end(),
                                    [&](const auto& array) { return array.name == name; });
    return found == root.arrays.end() ? nullptr : &*found;
  };
  if (const StoredArray* unnamed = find("")) {
    return unnamed;
  }
  if (const StoredArray* main = find(kMainName)) {
    return main;
  }
  return root.arrays.size() == 1 ? &root.arrays.front() : nullptr;
}

Group concatenate_stores(const std::vector<StorePtr>& stores, const std::vector<std::string>& names,
                         const Verifier& verifier) {
  Group all = stores.front()->root;
  Appender appender(all, names.front(), verifier);
  for (std::size_t i = 1; i < stores.size(); ++i) {
    appender.append(stores[i]->root, names[i]);
  }
  appender.finish();
  return all;
}

StoreTree build_store_tree(const std::vector<const OpenedSource*>& sources, bool is_root,
                           const DatasetOptions& options, const Warn& warn) {
  std::vector<Member> members = gather_members(sources, *options.fields.verifier);
  const std::string format = members.front().format;
  const Group joined = join_members(std::move(members));
  require_distinct(joined);
  TreeBuilder builder(options, warn);
  StoreTree tree;
  tree.split = builder.build(joined, format, is_root ? "" : sources.front()->split);
  tree.names_seen = builder.names_seen();
  return tree;
}

std::shared_ptr<const RecordTable> rows_of_store(const OpenedSource& source,
                                                 const Verifier& verifier) {
  const Group root = concatenate_sources({&source}, verifier);
  std::vector<const StoredArray*> chosen;
  if (!source.array.empty()) {
    chosen.push_back(&require_main_array(root, source.text));
  } else if (root.groups.empty()) {
    for (const StoredArray& stored : root.arrays) {
      chosen.push_back(&stored);
    }
  }
  if (chosen.empty()) {
    throw file_error(ErrorKind::kUnsupported, source.text,
                     "it is a store of groups, expected arrays, whose rows are records; take one "
                     "array of it with SPLIT/ARRAY=");
  }
  std::vector<TableField> fields;
  std::vector<SourcePtr> files;
  for (const StoredArray* stored : chosen) {
    if (values_of_offsets(root, stored->name).empty()) {
      fields.push_back(rows_of_array(root, *stored, source, verifier));
      files.insert(files.end(), stored->sources.begin(), stored->sources.end());
    }
  }
  for (const TableField& field : fields) {
    if (field.column->size() != fields.front().column->size()) {
      throw file_error(ErrorKind::kUnsupported, source.text,
                       fmt::format("its arrays {} and {} differ in rows, so these are no records",
                                   fields.front().name, field.name));
    }
  }
  return make_row_table(std::move(fields), std::move(files));
}

}  // namespace npyfs
