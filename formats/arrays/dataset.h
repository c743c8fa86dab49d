// SPDX-License-Identifier: Apache-2.0
//
// What a mount shows: splits, the arrays in them, attributes. The user's choices of fields, names
// and layouts are applied here.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/arrays/plain_ranges.h"
#include "formats/arrays/ragged.h"
#include "formats/arrays/record_array.h"
#include "formats/bytes/value.h"
#include "formats/payloads/image.h"
#include "formats/record_table.h"
#include "formats/store.h"
#include "formats/tables/cut.h"
#include "formats/tables/view_words.h"

namespace npyfs {

enum class Layout { kAuto, kStack, kConcat, kPad, kBytes };

// What the user said about fields; the names are those before --name.
struct FieldChoices {
  std::map<std::string, Layout> layout;
  std::map<std::string, DType> dtype;
  std::map<std::string, Shape> shape;
  std::map<std::string, std::string> decode;
  std::map<std::string, std::string> rename;
  std::string pad_value = "0";
  std::optional<ImageSize> image;  // --image
  // Verifies the records that fields, keys and offsets are read from. Must outlive them.
  const Verifier* verifier = &strict_verifier();
};

struct DatasetOptions {
  FieldChoices fields;
  Verify verify = Verify::kRead;
  bool permissive = false;
  std::vector<std::pair<std::string, Value>> attributes;  // --attr, in order
  std::optional<std::vector<std::string>> class_names;    // --class-names
  std::map<std::string, std::string> maps;                // --map ARRAY=TABLE
  SplitRule split_rule;                                   // --split, --split-list
  View view;                                              // --rows, --shuffle, --part, --pad, ...
  const char* part_option = "--part";                     // or --rank, as the user wrote it
};

// One SOURCE of the command line, its files opened, in order: all tables or all stores.
struct OpenedSource {
  // "train"; empty for a store that keeps its own groups as splits.
  std::string split;
  std::string array;   // ARRAY of SPLIT/ARRAY=, else empty
  std::string text;    // as the user wrote it, for messages
  std::string format;  // of the table of formats
  std::vector<std::shared_ptr<const RecordTable>> tables;
  std::vector<StorePtr> stores{};
  // The split of a store that is one array and was given no SPLIT: "train", or taken from its name.
  std::string array_split{};
  // --permissive, for this source alone.
  bool permissive = false;
};

struct NamedArray {
  std::string name;  // without .npy, already escaped
  ArrayPtr array;
  std::string format;
  std::uint64_t records = 0;  // or rows; 0 for an array without axes
  std::vector<SourcePtr> sources;
  // The whole .npy file that the array is, to be shown unchanged. Null: shown as np.save would
  // write it.
  std::shared_ptr<const StoredNpy> whole{};
  // How a view remakes the array. Empty for arrays of a store: they are selected by row, or by
  // record if they have a pair.
  std::optional<ArrayRecipe> recipe{};
  std::shared_ptr<const RaggedPair> pair{};
  bool holds_offsets = false;  // the array is the pair's offsets
  Dict attributes{};           // shown as <name>.attrs.json, where there are any
  // Of an array of a view: where its bytes lie in the array that it was made from. Null where they
  // are computed, or in Fortran order.
  std::shared_ptr<const PlainRanges> plain{};
};

// A directory of arrays: a split, or a group of a store inside one.
struct Split {
  std::string name;                            // already escaped
  std::vector<NamedArray> arrays;              // by name
  std::shared_ptr<const RecordTable> records;  // null: no records/
  std::vector<Split> groups{};                 // by name
  Dict attributes{};                           // shown as attrs.json, where there are any
};

struct Dataset {
  std::vector<Split> splits;
  std::vector<NamedArray> arrays;  // at the root, by name: stores may have some there
  Dict attributes;
  std::string pad_value = "0";  // --pad-value, for views
};

// How npyfs reads it: "mapped" (what the sources hold, or what is in memory), "decoded".
std::string_view access_word(const NamedArray& array);

// Calls `visit` for every array with its path, "train/x".
void for_each_array(const Dataset& dataset,
                    const std::function<void(const std::string&, const NamedArray&)>& visit);

// Joins, lays out, names. `warn` gets one line per finding. Throws kCorrupt if a whole source is
// damaged, kUsage for choices that name no field or contradict each other.
Dataset build_dataset(const std::vector<OpenedSource>& sources, const DatasetOptions& options,
                      const std::function<void(const std::string&)>& warn);

}  // namespace npyfs
