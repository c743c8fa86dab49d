// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/sources_by_array.h"

#include <fmt/format.h>

#include <algorithm>

namespace npyfs {

std::vector<std::vector<const OpenedSource*>> sources_by_array(
    const std::vector<const OpenedSource*>& sources) {
  std::vector<std::vector<const OpenedSource*>> parts;
  for (const OpenedSource* source : sources) {
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const auto& part) {
      return part.front()->array == source->array;
    });
    if (same == parts.end()) {
      parts.push_back({source});
      continue;
    }
    const OpenedSource& first = *same->front();
    if (first.format != source->format) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} is {}, {} is {}: sources of one array must be of one format; "
                              "SPLIT/ARRAY= joins others",
                              first.text, first.format, source->text, source->format));
    }
    same->push_back(source);
  }
  return parts;
}

}  // namespace npyfs
