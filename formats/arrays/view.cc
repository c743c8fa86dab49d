// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "formats/arrays/pad_value.h"
#include "formats/arrays/recordings.h"
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
  SplitViewer(const View& view, const std::string& pad_value, const ViewContext& context)
      : view_(view), pad_value_(pad_value), context_(context) {}

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
    for (const NamedArray& array : arrays) {
      if (const OffsetsPtr offsets = find_offsets(array)) {
        shown.push_back(show_ragged(array, offsets));
      } else if (array.pair == nullptr) {
        shown.push_back(show_rows(array));
      }
    }
    std::sort(shown.begin(), shown.end(),
              [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
    return shown;
  }

  // Those of the whole data set, where they say which recordings the rows of a split are from.
  void follow(const Split& split, Dict& attributes) const {
    const auto x = std::find_if(split.arrays.begin(), split.arrays.end(),
                                [](const NamedArray& array) { return array.name == "x"; });
    if (x == split.arrays.end() || x->array->shape().empty()) {
      return;
    }
    if (view_.shuffle_seed || x->offsets != nullptr || x->pair != nullptr) {
      drop_recordings(attributes, split.name);
      return;
    }
    const std::uint64_t rows = x->array->shape()[0];
    if (!cut_recordings(attributes, split.name, rows, part_bounds(rows, view_.part))) {
      context_.warn(left_out_recordings(split.name));
    }
  }

 private:
  // Null where it has none. Of a store they are read now: whether they are offsets is not known
  // before.
  OffsetsPtr find_offsets(const NamedArray& array) {
    if (array.pair == nullptr || array.offsets != nullptr) {
      return array.offsets;
    }
    const auto [known, is_new] = offsets_.try_emplace(array.pair.get());
    if (is_new) {
      try {
        known->second = context_.find_offsets(array.pair);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
          throw;
        }
        context_.left_out(error);
      }
    }
    return known->second;
  }

  NamedArray show_rows(const NamedArray& array) const {
    NamedArray shown = array;
    if (!array.array->shape().empty()) {
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
    const std::uint64_t longest = array.text_length ? longest_text(array, order, width) : width;
    return longest < width ? select_text_rows(array.array, order, longest)
                           : select_array_rows(array.array, order);
  }

  // `width` where that cannot be found out: one text that cannot be read is no reason to show none.
  static std::uint64_t longest_text(const NamedArray& array, const RecordOrder& order,
                                    std::uint64_t width) {
    std::uint64_t longest = 1;
    try {
      for (std::uint64_t place = 0; place < order.size() && longest < width; ++place) {
        longest = std::max(longest, array.text_length(order[place], longest).value_or(width));
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kChanged) {
        throw;
      }
      return width;
    }
    return longest;
  }

  NamedArray show_ragged(const NamedArray& array, const OffsetsPtr& offsets) {
    const RaggedOrderPtr order = ragged_order(offsets);
    const ArrayPtr values = array.pair != nullptr ? array.pair->values : array.array;
    NamedArray shown = array;
    shown.records = order->records().size();
    shown.whole = nullptr;
    shown.offsets = nullptr;
    shown.pair = nullptr;
    if (array.holds_offsets) {
      shown.array = view_.pad ? ragged_lengths(order) : ragged_offsets(order);
      if (view_.pad) {
        shown.name.resize(shown.name.size() - kOffsetsEnd.size());
        shown.name += "_lengths";
      }
    } else if (view_.pad) {
      shown.array = pad_ragged(values, order, pad_element(pad_value_, values->dtype(), array.name));
    } else {
      shown.array = select_ragged(values, order);
    }
    if (array.pair != nullptr && !view_.pad) {
      shown.pair = shown_pair(array.pair, order);
    }
    return shown;
  }

  // What is cut for one rank may be seen another way in its turn.
  std::shared_ptr<const RaggedPair> shown_pair(const std::shared_ptr<const RaggedPair>& pair,
                                               const RaggedOrderPtr& order) {
    std::shared_ptr<const RaggedPair>& shown = pairs_[pair.get()];
    if (shown == nullptr) {
      shown = std::make_shared<const RaggedPair>(
          RaggedPair{select_ragged(pair->values, order), ragged_offsets(order), pair->name});
    }
    return shown;
  }

  RecordOrder order_of(std::uint64_t count) const {
    return {count, view_.shuffle_seed, view_.part};
  }

  // An array and its offsets have the same.
  RaggedOrderPtr ragged_order(const OffsetsPtr& offsets) {
    RaggedOrderPtr& order = ragged_[offsets.get()];
    if (order == nullptr) {
      order = std::make_shared<const RaggedOrder>(offsets, order_of(offsets->size() - 1));
    }
    return order;
  }

  const View& view_;
  const std::string& pad_value_;
  const ViewContext& context_;
  std::map<const void*, RaggedOrderPtr> ragged_;
  std::map<const RaggedPair*, OffsetsPtr> offsets_;
  std::map<const RaggedPair*, std::shared_ptr<const RaggedPair>> pairs_;
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

Dataset make_view(const Dataset& dataset, const View& view, const ViewContext& context) {
  SplitViewer viewer(view, dataset.pad_value, context);
  Dataset shown;
  shown.attributes = dataset.attributes;
  shown.pad_value = dataset.pad_value;
  shown.arrays = viewer.show(dataset.arrays);
  for (const Split& split : dataset.splits) {
    shown.splits.push_back(viewer.show(split));
    viewer.follow(split, shown.attributes);
  }
  return shown;
}

}  // namespace npyfs
