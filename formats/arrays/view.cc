// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/view.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "formats/arrays/pad_value.h"
#include "formats/arrays/selected_array.h"

namespace npyfs {

namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

// "3of16".
std::optional<Part> parse_part(std::string_view text) {
  const std::size_t of = text.find("of");
  if (of == std::string_view::npos) {
    return std::nullopt;
  }
  const auto rank = parse_number(text.substr(0, of));
  const auto world_size = parse_number(text.substr(of + 2));
  return rank && world_size && *rank < *world_size && *world_size <= kMostWorldSize
             ? std::optional(Part{*rank, *world_size})
             : std::nullopt;
}

class SplitViewer {
 public:
  SplitViewer(const View& view, const std::string& pad_value)
      : view_(view), pad_value_(pad_value) {}

  Split show(const Split& split) {
    Split shown;
    shown.name = split.name;
    shown.attributes = split.attributes;
    shown.arrays = show(split.arrays);
    for (const Split& group : split.groups) {
      shown.groups.push_back(show(group));
    }
    if (split.records != nullptr && !view_.shuffle_seed) {
      shown.records = select_rows(split.records, part_rows(split.records->size(), view_.part));
    }
    return shown;
  }

  std::vector<NamedArray> show(const std::vector<NamedArray>& arrays) {
    std::vector<NamedArray> shown;
    std::set<std::string> names;
    for (const NamedArray& array : arrays) {
      names.insert(array.name);
    }
    for (const NamedArray& array : arrays) {
      if (array.offsets != nullptr || !is_part_of_ragged(array.name, names)) {
        shown.push_back(show(array));
      }
    }
    std::sort(shown.begin(), shown.end(),
              [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
    return shown;
  }

 private:
  NamedArray show(const NamedArray& array) {
    NamedArray shown = array;
    if (array.offsets != nullptr) {
      show_ragged(array, shown);
    } else if (!array.array->shape().empty()) {
      const RecordOrder order = order_of(array.array->shape()[0]);
      shown.array = select(array, order);
      shown.whole = nullptr;
      shown.records = order.size();
    }
    return shown;
  }

  // Text is as wide as the longest that is shown.
  static ArrayPtr select(const NamedArray& array, const RecordOrder& order) {
    const std::uint64_t width = array.array->dtype().itemsize / sizeof(char32_t);
    std::uint64_t longest = array.text_length ? 1 : width;
    for (std::uint64_t place = 0; place < order.size() && longest < width; ++place) {
      longest = std::max(longest, array.text_length(order[place]).value_or(width));
    }
    return longest < width ? select_text_rows(array.array, order, longest)
                           : select_array_rows(array.array, order);
  }

  void show_ragged(const NamedArray& array, NamedArray& shown) {
    const RaggedOrderPtr order = ragged_order(array.offsets);
    shown.records = order->records().size();
    shown.offsets = nullptr;  // no view is made of a view
    if (array.holds_offsets) {
      shown.array = view_.pad ? ragged_lengths(order) : ragged_offsets(order);
      if (view_.pad) {
        constexpr std::string_view kEnd = "_offsets";
        shown.name.resize(shown.name.size() - kEnd.size());
        shown.name += "_lengths";
      }
    } else if (view_.pad) {
      shown.array =
          pad_ragged(array.array, order, pad_element(pad_value_, array.array->dtype(), array.name));
    } else {
      shown.array = select_ragged(array.array, order);
    }
  }

  RecordOrder order_of(std::uint64_t count) const {
    return {count, view_.shuffle_seed, view_.part};
  }

  // An array and its offsets have the same.
  RaggedOrderPtr ragged_order(const std::shared_ptr<const std::vector<std::int64_t>>& offsets) {
    RaggedOrderPtr& order = ragged_[offsets.get()];
    if (order == nullptr) {
      order = std::make_shared<const RaggedOrder>(offsets, order_of(offsets->size() - 1));
    }
    return order;
  }

  const View& view_;
  const std::string& pad_value_;
  std::map<const void*, RaggedOrderPtr> ragged_;
};

}  // namespace

std::optional<View> parse_view(std::string_view name) {
  if (!name.starts_with('@')) {
    return std::nullopt;
  }
  View view;
  bool has_part = false;
  for (std::size_t at = 1; at <= name.size();) {
    const std::size_t end = std::min(name.find(',', at), name.size());
    const std::string_view word = name.substr(at, end - at);
    const std::string_view value = word.substr(std::min(word.find('='), word.size() - 1) + 1);
    if (word == "pad" && !view.pad) {
      view.pad = true;
    } else if (word.starts_with("shuffle=") && !view.shuffle_seed && parse_number(value)) {
      view.shuffle_seed = parse_number(value);
    } else if (word.starts_with("part=") && !has_part && parse_part(value)) {
      view.part = *parse_part(value);
      has_part = true;
    } else {
      return std::nullopt;
    }
    at = end + 1;
  }
  return view;
}

Dataset make_view(const Dataset& dataset, const View& view) {
  SplitViewer viewer(view, dataset.pad_value);
  Dataset shown;
  shown.attributes = dataset.attributes;
  shown.pad_value = dataset.pad_value;
  shown.arrays = viewer.show(dataset.arrays);
  for (const Split& split : dataset.splits) {
    shown.splits.push_back(viewer.show(split));
  }
  return shown;
}

}  // namespace npyfs
