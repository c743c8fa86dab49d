// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/arrays/pad_value.h"
#include "formats/arrays/record_array.h"
#include "formats/arrays/recordings.h"
#include "formats/arrays/row_column.h"
#include "formats/tables/composed_table.h"

namespace npyfs {

namespace {

using Form = ArrayRecipe::Form;

constexpr const char* kMainName = "x";
constexpr const char* kPermutation = "perm";

template <typename Arrays>
const NamedArray* find_array(const Arrays& arrays, const std::string& name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](const NamedArray& array) { return array.name == name; });
  return found == arrays.end() ? nullptr : &*found;
}

// Length of the longest text shown (at least 1), or `width` if a text cannot be read.
std::uint64_t longest_text(const Column& column, const RecordMap& map, std::uint64_t width) {
  std::uint64_t longest = 1;
  try {
    for (std::uint64_t row = 0; row < map.size() && longest < width; ++row) {
      longest = std::max(longest, column.text_length(map[row].record, longest).value_or(width));
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kChanged) {
      throw;
    }
    return width;
  }
  return longest;
}

// An array of the data set and its recipe. There is no recipe if the array has no axes or is in
// Fortran order.
struct Given {
  NamedArray array;
  std::optional<ArrayRecipe> recipe;
};

// The arrays of one directory under the view's map.
class DirectoryViewer {
 public:
  DirectoryViewer(const View& view, const std::string& pad_value, const ViewContext& context,
                  TablePtr records)
      : view_(view), pad_value_(pad_value), context_(context), records_(std::move(records)) {}

  std::vector<NamedArray> show(const std::vector<NamedArray>& arrays) {
    for (const NamedArray& array : arrays) {
      find_recipe(array);
    }
    std::vector<NamedArray> shown;
    for (const Given& one : given_) {
      shown.push_back(remake(one));
    }
    if (context_.with_permutation) {
      add_permutation(shown);
    }
    std::sort(shown.begin(), shown.end(),
              [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
    return shown;
  }

  // The split's records under the view; null if it shows none.
  TablePtr show_records() {
    return records_ != nullptr && !view_.shuffle ? select_rows(records_, map_of(records_->size()))
                                                 : nullptr;
  }

  // How many records the directory has. x decides, else all arrays must agree.
  std::optional<std::uint64_t> record_count() const {
    if (records_ != nullptr) {
      return records_->size();
    }
    std::optional<std::uint64_t> common;
    bool agree = true;
    for (const Given& one : given_) {
      const auto count = count_of(one);
      if (count && one.array.name == kMainName) {
        return count;
      }
      agree = agree && (!count || !common || *common == *count);
      common = count ? count : common;
    }
    return agree ? common : std::nullopt;
  }

  // The view's map of `count` records.
  const RecordMap& map_of(std::uint64_t count) {
    const auto known = maps_.find(count);
    if (known != maps_.end()) {
      return known->second;
    }
    return maps_.emplace(count, view_map(view_, count, [&] { return shards_of(count); }))
        .first->second;
  }

 private:
  // Nothing for an array without axes.
  static std::optional<std::uint64_t> count_of(const Given& one) {
    if (one.recipe) {
      return one.recipe->map.size();
    }
    const Shape& shape = one.array.array->shape();
    return shape.empty() ? std::nullopt : std::optional(shape[0]);
  }

  void find_recipe(const NamedArray& array) {
    if (array.recipe) {
      given_.push_back({array, array.recipe});
    } else if (array.pair != nullptr) {
      if (const ItemsPtr items = items_of(array.pair)) {
        ArrayRecipe recipe = stacked(items);
        recipe.form = array.holds_offsets ? Form::kOffsets : Form::kConcat;
        given_.push_back({array, std::move(recipe)});
      }
    } else if (array.array->shape().empty() || array.array->fortran_order()) {
      given_.push_back({array, std::nullopt});
    } else {
      given_.push_back({array, stacked(row_items(array.array))});
    }
  }

  // Null if the store's offsets are invalid. They are checked here for the first time.
  ItemsPtr items_of(const std::shared_ptr<const RaggedPair>& pair) {
    const auto [known, is_new] = pairs_.try_emplace(pair.get());
    if (is_new) {
      try {
        known->second = row_items(pair->values, context_.find_offsets(pair));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
          throw;
        }
        context_.left_out(error);
      }
    }
    return known->second;
  }

  NamedArray remake(const Given& one) {
    NamedArray array = one.array;
    array.plain = nullptr;
    if (!one.recipe) {
      if (array.array->fortran_order()) {
        const RecordMap& map = map_of(array.array->shape()[0]);
        array.array = select_fortran_rows(array.array, map);
        array.records = map.size();
        array.whole = nullptr;
      }
      return array;
    }
    ArrayRecipe recipe = *one.recipe;
    const RecordMap& map = map_of(recipe.map.size());
    const bool shows_all = map.size() == recipe.map.size();
    recipe.map = recipe.map.select(map);
    if (view_.pad && (recipe.form == Form::kConcat || recipe.form == Form::kOffsets)) {
      // If all records are shown, the order does not change the longest: the plain map is cheaper.
      pad(array, recipe, shows_all ? one.recipe->map : recipe.map);
    }
    if (recipe.form == Form::kConcat || recipe.form == Form::kOffsets) {
      recipe.starts = starts_of(recipe);
    }
    if (recipe.form == Form::kStack && recipe.items->dtype().kind == 'U' && !shows_all) {
      narrow(recipe);
    }
    array.plain = plain_ranges(one, recipe, map);
    array.array = make_record_array(recipe);
    array.records = recipe.map.size();
    array.recipe = std::move(recipe);
    array.whole = nullptr;
    array.pair = nullptr;
    return array;
  }

  // Null for what is computed.
  static std::shared_ptr<const PlainRanges> plain_ranges(const Given& one, const ArrayRecipe& shown,
                                                         const RecordMap& map) {
    if (shown.form == Form::kOffsets || shown.form == Form::kLengths) {
      return nullptr;
    }
    ArrayRecipe given = *one.recipe;
    if (given.form == Form::kConcat && given.starts == nullptr) {
      given.starts = std::make_shared<const Starts>(*given.items, given.map);
    }
    return std::make_shared<const PlainRanges>(one.array.array, given, shown, map);
  }

  void pad(NamedArray& array, ArrayRecipe& recipe, const RecordMap& shown) const {
    if (recipe.form == Form::kOffsets) {
      recipe.form = Form::kLengths;
      array.name.resize(array.name.size() - kOffsetsEnd.size());
      array.name += "_lengths";
      return;
    }
    recipe.form = Form::kPad;
    recipe.most_rows = most_rows(*recipe.items, shown);
    recipe.pad_value = pad_element(pad_value_, recipe.items->dtype(), array.name);
  }

  // Makes a text array as wide as the longest text shown.
  static void narrow(ArrayRecipe& recipe) {
    const std::uint64_t width =
        recipe.code_points.value_or(recipe.items->dtype().itemsize / sizeof(char32_t));
    const std::uint64_t longest = longest_text(recipe.items->column(), recipe.map, width);
    if (longest < width) {
      recipe.code_points = longest;
    }
  }

  // x and x_offsets share one Starts.
  StartsPtr starts_of(const ArrayRecipe& recipe) {
    StartsPtr& starts = starts_[recipe.items.get()];
    if (starts == nullptr) {
      starts = std::make_shared<const Starts>(*recipe.items, recipe.map);
    }
    return starts;
  }

  // Shard starts of the records; in a store, of its largest array with `count` rows.
  ShardStarts shards_of(std::uint64_t count) const {
    if (records_ != nullptr && records_->size() == count) {
      return std::make_shared<const std::vector<std::uint64_t>>(records_->shard_starts());
    }
    const Given* largest = nullptr;
    for (const Given& one : given_) {
      const bool fits = one.recipe && one.recipe->map.size() == count;
      if (fits &&
          (largest == nullptr || one.array.array->nbytes() > largest->array.array->nbytes())) {
        largest = &one;
      }
    }
    if (largest == nullptr) {
      return nullptr;
    }
    const ArrayRecipe& recipe = *largest->recipe;
    auto starts = std::make_shared<std::vector<std::uint64_t>>();
    for (std::uint64_t row = 0; row < count;) {
      starts->push_back(row);
      const auto [place, run] = recipe.map.stretch(row);
      row += std::min(run, recipe.items->column().shard_run(place.record));
    }
    return starts;
  }

  void add_permutation(std::vector<NamedArray>& shown) {
    const auto count = record_count();
    if (!count || shown.empty()) {
      return;
    }
    if (find_array(shown, kPermutation) != nullptr) {
      context_.warn("perm.npy is an array of the data set, so the view's own is left out");
      return;
    }
    const RecordMap& map = map_of(*count);
    NamedArray permutation;
    permutation.name = kPermutation;
    permutation.array = computed_numbers(map.size(), [map](std::uint64_t row) {
      return static_cast<std::int64_t>(map[row].record);
    });
    permutation.format = shown.front().format;
    permutation.records = map.size();
    permutation.sources = shown.front().sources;
    shown.push_back(std::move(permutation));
  }

  const View& view_;
  const std::string& pad_value_;
  const ViewContext& context_;
  TablePtr records_;
  std::vector<Given> given_;
  std::map<std::uint64_t, RecordMap> maps_;  // by the number of records
  std::map<const Items*, StartsPtr> starts_;
  std::map<const RaggedPair*, ItemsPtr> pairs_;
};

class Viewer {
 public:
  Viewer(const Dataset& dataset, const View& view, const ViewContext& context)
      : dataset_(dataset), view_(view), context_(context) {}

  Dataset show() {
    Dataset shown;
    shown.attributes = dataset_.attributes;
    shown.pad_value = dataset_.pad_value;
    shown.arrays =
        DirectoryViewer(view_, dataset_.pad_value, context_, nullptr).show(dataset_.arrays);
    for (const Split& split : dataset_.splits) {
      shown.splits.push_back(show(split, &counts_));
      follow(split, shown.attributes);
    }
    if (context_.part_counts != nullptr) {
      *context_.part_counts = std::move(counts_);
    } else if (auto part = part_attribute(view_.part, counts_)) {
      set_value(shown.attributes, "npyfs_part", std::move(*part));
    }
    return shown;
  }

 private:
  // `counts` receives how many records the split has before its part is taken; may be null.
  Split show(const Split& split, SplitCounts* counts) {
    DirectoryViewer viewer(view_, dataset_.pad_value, context_, split.records);
    Split shown;
    shown.name = split.name;
    shown.attributes = split.attributes;
    shown.arrays = viewer.show(split.arrays);
    shown.records = viewer.show_records();
    for (const Split& group : split.groups) {
      shown.groups.push_back(show(group, nullptr));
    }
    if (const auto count = viewer.record_count(); count && counts != nullptr) {
      counts->emplace_back(split.name, rows_of(view_, *count).size());
    }
    return shown;
  }

  // Adjusts the data set's attributes that say which recordings the split's rows come from.
  void follow(const Split& split, Dict& attributes) const {
    const NamedArray* x = find_array(split.arrays, kMainName);
    if (x == nullptr || x->array->shape().empty()) {
      return;
    }
    const std::uint64_t rows = x->array->shape()[0];
    const bool is_ragged = x->pair != nullptr || (x->recipe && x->recipe->form == Form::kConcat);
    const auto kept = view_.shuffle || is_ragged ? std::nullopt : view_map(view_, rows).as_range();
    if (!kept) {
      drop_recordings(attributes, split.name);
    } else if (!cut_recordings(attributes, split.name, rows, *kept)) {
      context_.warn(left_out_recordings(split.name));
    }
  }

  const Dataset& dataset_;
  const View& view_;
  const ViewContext& context_;
  SplitCounts counts_;
};

}  // namespace

Dataset make_view(const Dataset& dataset, const View& view, const ViewContext& context) {
  return Viewer(dataset, view, context).show();
}

}  // namespace npyfs
