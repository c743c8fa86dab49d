// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/recordings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/value_access.h"

namespace npyfs {

namespace {

constexpr std::string_view kNames = "filename_";
constexpr std::string_view kStarts = "filename_startsample_";
constexpr std::string_view kEnds = "filename_endsample_";

std::string attribute_of(std::string_view prefix, const std::string& split) {
  return std::string(prefix) + split;
}

struct Recording {
  Value name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Nothing where these are not three lists about `rows` rows.
std::optional<std::vector<Recording>> read_recordings(const Dict& attributes,
                                                      const std::string& split,
                                                      std::uint64_t rows) {
  const List* names = as_list(find_value(attributes, attribute_of(kNames, split)));
  const List* starts = as_list(find_value(attributes, attribute_of(kStarts, split)));
  const List* ends = as_list(find_value(attributes, attribute_of(kEnds, split)));
  if (names == nullptr || starts == nullptr || ends == nullptr || names->size() != starts->size() ||
      names->size() != ends->size()) {
    return std::nullopt;
  }
  std::vector<Recording> recordings;
  for (std::size_t i = 0; i < names->size(); ++i) {
    const auto begin = as_uint64(&(*starts)[i]);
    const auto end = as_uint64(&(*ends)[i]);
    if (!begin || !end || *begin > *end || *end > rows) {
      return std::nullopt;
    }
    recordings.push_back({(*names)[i], *begin, *end});
  }
  return recordings;
}

void write_recordings(Dict& attributes, const std::string& split,
                      std::vector<Recording> recordings) {
  List names;
  List starts;
  List ends;
  for (Recording& recording : recordings) {
    names.push_back(std::move(recording.name));
    starts.push_back(Value{static_cast<std::int64_t>(recording.begin)});
    ends.push_back(Value{static_cast<std::int64_t>(recording.end)});
  }
  set_value(attributes, attribute_of(kNames, split), Value{std::move(names)});
  set_value(attributes, attribute_of(kStarts, split), Value{std::move(starts)});
  set_value(attributes, attribute_of(kEnds, split), Value{std::move(ends)});
}

}  // namespace

bool has_recordings(const Dict& attributes, const std::string& split) {
  return find_value(attributes, attribute_of(kStarts, split)) != nullptr ||
         find_value(attributes, attribute_of(kEnds, split)) != nullptr;
}

bool cut_recordings(Dict& attributes, const std::string& split, std::uint64_t rows,
                    const Bounds& kept) {
  if (!has_recordings(attributes, split) || (kept.begin == 0 && kept.end == rows)) {
    return true;
  }
  const auto recordings = read_recordings(attributes, split, rows);
  if (!recordings) {
    drop_recordings(attributes, split);
    return false;
  }
  std::vector<Recording> left;
  for (const Recording& recording : *recordings) {
    const std::uint64_t begin = std::max(recording.begin, kept.begin);
    const std::uint64_t end = std::min(recording.end, kept.end);
    if (begin < end) {
      left.push_back({recording.name, begin - kept.begin, end - kept.begin});
    }
  }
  write_recordings(attributes, split, std::move(left));
  return true;
}

std::string left_out_recordings(const std::string& split) {
  return fmt::format(
      "attributes filename_startsample_{0} and filename_endsample_{0} are left out: they are no "
      "rows of {0}/x for each of filename_{0}, so they cannot follow where rows are cut",
      split);
}

void drop_recordings(Dict& attributes, const std::string& split) {
  if (!has_recordings(attributes, split)) {
    return;
  }
  std::erase_if(attributes,
                [&](const DictEntry& entry) { return recordings_split(entry.name) == split; });
}

bool append_recordings(Dict& all, const Dict& more, const std::string& split, std::uint64_t rows) {
  if (!has_recordings(all, split) && !has_recordings(more, split)) {
    return true;
  }
  auto recordings = read_recordings(all, split, rows);
  // How many rows `more` has nobody asks: its numbers are wrong by themselves then.
  const auto added = read_recordings(more, split, UINT64_MAX - rows);
  if (!recordings || !added) {
    drop_recordings(all, split);
    return false;
  }
  for (const Recording& recording : *added) {
    recordings->push_back({recording.name, rows + recording.begin, rows + recording.end});
  }
  write_recordings(all, split, std::move(*recordings));
  return true;
}

std::string recordings_split(const std::string& attribute) {
  for (const std::string_view prefix : {kStarts, kEnds, kNames}) {
    if (attribute.starts_with(prefix)) {
      return attribute.substr(prefix.size());
    }
  }
  return {};
}

}  // namespace npyfs
