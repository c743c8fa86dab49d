// SPDX-License-Identifier: Apache-2.0
//
// Which arrays a field becomes: its payload decoded, its items stacked, padded or put one after
// another, as the user said or as their shapes suggest.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/dataset.h"
#include "formats/arrays/record_array.h"
#include "formats/record_table.h"

namespace npyfs {

struct LaidOutArray {
  std::string name;
  ArrayPtr array;
  ArrayRecipe recipe;
};

struct LaidOutField {
  std::vector<LaidOutArray> arrays;
  // The rate of audio, if all records agree.
  std::optional<std::uint32_t> rate_hz;
  // Records found damaged during layout, and the warnings about them.
  std::vector<std::uint64_t> damaged;
  std::vector<std::string> damage_texts;
};

// `name` names the field in `choices` and the arrays. Throws kCorrupt or kUnsupported if the whole
// field is at fault, kUsage for choices it cannot meet.
LaidOutField lay_out(const std::string& name, const Field& field, const TablePtr& table,
                     const FieldChoices& choices,
                     const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
