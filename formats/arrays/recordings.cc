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
#include "formats/registry.h"

namespace npyfs {

namespace {

std::string names_of(const std::string& split) { return row_attributes().recording_names + split; }
std::string starts_of(const std::string& split) {
  return row_attributes().recording_starts + split;
}
std::string ends_of(const std::string& split) { return row_attributes().recording_ends + split; }

struct Recording {
  Value name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Nothing where these are not three lists about `rows` rows.
std::optional<std::vector<Recording>> read_recordings(const Dict& attributes,
                                                      const std::string& split,
                                                      std::uint64_t rows) {
  const List* names = as_list(find_value(attributes, names_of(split)));
  const List* starts = as_list(find_value(attributes, starts_of(split)));
  const List* ends = as_list(find_value(attributes, ends_of(split)));
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
  set_value(attributes, names_of(split), Value{std::move(names)});
  set_value(attributes, starts_of(split), Value{std::move(starts)});
  set_value(attributes, ends_of(split), Value{std::move(ends)});
}

}  // namespace

bool has_recordings(const Dict& attributes, const std::string& split) {
  return find_value(attributes, starts_of(split)) != nullptr ||
         find_value(attributes, ends_of(split)) != nullptr;
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
      "attributes {} and {} are left out: they are no rows of {}/x for each of {}, so they cannot "
      "follow where rows are cut",
      starts_of(split), ends_of(split), split, names_of(split));
}

std::string unjoined_recordings(const std::string& split) {
  return fmt::format(
      "attributes {}, {} and {} are left out: not all stores that {}/x is made of have them as "
      "rows of x",
      names_of(split), starts_of(split), ends_of(split), split);
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
  const RowAttributes& known = row_attributes();
  // Tries the longest first, since the others are prefixes of it.
  for (const std::string_view prefix :
       {known.recording_starts, known.recording_ends, known.recording_names}) {
    if (attribute.starts_with(prefix)) {
      return attribute.substr(prefix.size());
    }
  }
  return {};
}

}  // namespace npyfs
