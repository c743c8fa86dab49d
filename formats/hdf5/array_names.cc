// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/array_names.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>

#include "formats/bytes/error.h"

namespace npyfs {

void settle_names(const std::string& file, std::vector<StoredArray>& arrays,
                  const std::function<void(const std::string&)>& warn) {
  std::map<std::string, std::size_t> names;  // how many have it
  for (const StoredArray& array : arrays) {
    ++names[array.name];
  }
  if (names.size() == arrays.size()) {
    return;
  }
  // Offsets stand directly behind what they are of.
  const auto offsets_follow = [&](std::size_t i, const std::string& name) {
    return i + 1 < arrays.size() && arrays[i + 1].name == name + kOffsetsSuffix;
  };
  std::map<std::string, std::string> sequences;  // by the name of their offsets
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (offsets_follow(i, arrays[i].name)) {
      sequences.emplace(arrays[i].name + kOffsetsSuffix, arrays[i].name);
    }
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string old = arrays[i].name;
    const auto of = sequences.find(old);
    if (of == sequences.end() || names[old] < 2 || (i > 0 && arrays[i - 1].name == of->second)) {
      continue;
    }
    std::string name;
    for (int n = 2; name.empty() || names.count(name) != 0; ++n) {
      name = fmt::format("{}~{}", old, n);
    }
    --names[old];
    ++names[name];
    warn(fmt::format("{}: {} is shown as {}, since {} says where the sequences of {} begin",
                     printable(file), printable(old), printable(name), printable(old),
                     printable(of->second)));
    if (offsets_follow(i, old)) {
      --names[arrays[i + 1].name];
      arrays[i + 1].name = name + kOffsetsSuffix;
      ++names[arrays[i + 1].name];
    }
    arrays[i].name = name;
  }
}

}  // namespace npyfs
