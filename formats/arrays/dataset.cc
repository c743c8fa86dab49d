// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "formats/arrays/recordings.h"
#include "formats/arrays/split_builder.h"
#include "formats/arrays/store_attributes.h"
#include "formats/arrays/store_tree.h"
#include "formats/arrays/view.h"

namespace npyfs {

namespace {

using Warn = std::function<void(const std::string&)>;

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

// The rate of the fields of one name, if all splits agree on it.
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
  const SplitMember& main = joined.main_member();
  std::vector<SplitBuilder> builders;
  for (const NamedRows& part : cut_splits(*main.table, rule, main.text)) {
    builders.push_back(joined);
    builders.back().select(part.split, part.rows);
  }
  return builders;
}

void require_cuttable(const DatasetOptions& options, const std::vector<std::string>& splits) {
  const Part& part = options.view.part;
  if (part.rank >= part.world_size) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--rank {} --world-size {}: expected a rank below the world size",
                            part.rank, part.world_size));
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
        table.tables = {rows_of_store(*source, *options_.fields.verifier)};
      }
    }
    std::vector<const OpenedSource*> pointers;
    for (const OpenedSource& table : tables) {
      pointers.push_back(&table);
    }
    SplitBuilder joined(name, gather_members(pointers, options_.fields, warn_), options_, warn_);
    const std::uint64_t given = joined.main_member().table->size();
    joined.join_members();
    const bool all_joined = joined.main_member().table->size() == given;
    joined_.insert(joined.joined().begin(), joined.joined().end());
    for (SplitBuilder& builder : cut(std::move(joined), options_.split_rule)) {
      const std::uint64_t rows = builder.main_member().table->size();
      dataset_.splits.push_back(builder.build());
      note_rows(rows, all_joined, dataset_.splits.back());
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
    const View before = before_layout(options_.view);
    if (before.maps_records()) {
      cut_stores(before);
    }
    follow_records(before, dataset_.attributes);
    if (auto part = part_attribute(before.part, counts_)) {
      set_value(dataset_.attributes, "npyfs_part", std::move(*part));
    }
    if (const View after = after_layout(options_.view); !after.is_plain()) {
      dataset_ = make_view(dataset_, after, view_context());
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

  // Records are cut already; arrays of stores are seen as the view sees them.
  void cut_stores(const View& view) {
    Dataset stores;
    stores.attributes = std::move(dataset_.attributes);
    stores.arrays = std::move(dataset_.arrays);
    const auto is_store = [](const Split& split) { return split.records == nullptr; };
    std::copy_if(dataset_.splits.begin(), dataset_.splits.end(), std::back_inserter(stores.splits),
                 is_store);
    ViewContext context = view_context();
    SplitCounts counts;
    context.part_counts = &counts;
    stores = make_view(stores, view, context);
    counts_.insert(counts_.end(), counts.begin(), counts.end());
    dataset_.attributes = std::move(stores.attributes);
    dataset_.arrays = std::move(stores.arrays);
    auto next = stores.splits.begin();
    for (Split& split : dataset_.splits) {
      if (is_store(split)) {
        split = std::move(*next++);
      }
    }
  }

  // For a mount's own view. Users see nothing else, so nothing may be left out in silence.
  ViewContext view_context() const {
    ViewContext context;
    context.left_out = [this](const Error& why) {
      if (!options_.permissive) {
        const char* option = options_.view.part.world_size > 1 ? options_.part_option
                             : options_.view.shuffle           ? "--shuffle"
                             : options_.view.rows              ? "--rows"
                                                               : "--pad";
        throw Error(why.kind(), fmt::format("{}: {}", option, why.what()));
      }
      warn_(fmt::format("{}; left out", why.what()));
    };
    context.warn = warn_;
    context.with_permutation = false;
    return context;
  }

  // `split` is made of the records that the options ask for of `rows`, or of fewer.
  void note_rows(std::uint64_t rows, bool all_joined, const Split& split) {
    const View before = before_layout(options_.view);
    const bool is_whole = all_joined && split.records->size() == view_map(before, rows).size();
    rows_.emplace(split.name, is_whole ? std::optional(rows) : std::nullopt);
    counts_.emplace_back(split.name, rows_of(before, rows).size());
  }

  // Updates the attributes that name recordings, if the records of splits are rows of stores.
  void follow_records(const View& view, Dict& attributes) const {
    if (!options_.split_rule.empty()) {
      std::set<std::string> told;
      for (const auto& [name, value] : attributes) {
        told.insert(recordings_split(name));
      }
      for (const std::string& split : told) {
        drop_recordings(attributes, split);
      }
      return;
    }
    for (const Split& split : dataset_.splits) {
      if (const auto rows = rows_.find(split.name); rows != rows_.end()) {
        follow_part(split, view, rows->second, attributes);
      }
    }
  }

  void follow_part(const Split& split, const View& view, const std::optional<std::uint64_t>& rows,
                   Dict& attributes) const {
    const bool is_ragged =
        std::any_of(split.arrays.begin(), split.arrays.end(), [](const NamedArray& array) {
          return array.name == "x" && array.recipe &&
                 array.recipe->form == ArrayRecipe::Form::kConcat;
        });
    const bool follows = rows && !(is_ragged && view.maps_records());
    const auto kept = follows ? view_map(view, *rows).as_range() : std::nullopt;
    if (!kept) {
      drop_recordings(attributes, split.name);
    } else if (!cut_recordings(attributes, split.name, *rows, *kept)) {
      warn_(left_out_recordings(split.name));
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
  // How many records each split has before its part is taken.
  SplitCounts counts_;
  // How many rows each split of records has; nothing if some were left out.
  std::map<std::string, std::optional<std::uint64_t>> rows_;
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

std::string_view access_word(const NamedArray& array) {
  const std::string storage = array.array->storage();
  if (storage == "computed") {
    return "mapped";
  }
  const bool is_packed =
      std::any_of(array.sources.begin(), array.sources.end(),
                  [](const SourcePtr& source) { return !source->access().empty(); });
  return storage.starts_with("mapped") && !is_packed ? "mapped" : "decoded";
}

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
