// SPDX-License-Identifier: Apache-2.0

#include "cli/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/keep.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/sizes.h"
#include "formats/bytes/error.h"
#include "fs/fill_tasks.h"
#include "fs/passthrough.h"
#include "fs/tree.h"

namespace npyfs {

namespace {

// "960 bytes", "3932 bytes (3.8 KiB)".
std::string size_text(std::uint64_t nbytes) {
  const std::string exact = fmt::format("{} bytes", nbytes);
  const std::string brief = short_size(nbytes);
  return brief == exact ? exact : fmt::format("{} ({})", exact, brief);
}

std::string sources_text(const std::vector<SourcePtr>& sources) {
  if (sources.empty()) {
    return "-";
  }
  const std::string first = printable(sources.front()->name());
  return sources.size() == 1 ? first : fmt::format("{} and {} more", first, sources.size() - 1);
}

// "mapped", "decoded"; of what lies in a compressed file "gzip, a random read inflates up to 1
// MiB".
std::string storage_text(const NamedArray& named) {
  const std::string storage = named.array->storage();
  for (const SourcePtr& source : named.sources) {
    const std::string access = source->access();
    if (!access.empty() && storage != "computed") {
      return storage == "mapped" ? access : fmt::format("{} ({})", storage, access);
    }
  }
  return storage;
}

bool is_kept(const NamedArray& named, const ReadWays& ways) {
  return ways.kept.count(named.array.get()) != 0;
}

// Whether the kernel can read it by itself, where it may.
bool could_be_native(const NamedArray& named, const ReadWays& ways) {
  return is_kept(named, ways) || (named.whole != nullptr && named.whole->is_file());
}

// "native" or "kept"; empty: as it is stored.
std::string_view short_way(const NamedArray& named, const ReadWays& ways) {
  return could_be_native(named, ways) && ways.why_not_native.empty() ? "native"
         : is_kept(named, ways)                                      ? "kept"
                                                                     : "";
}

std::vector<std::string> row_of(const NamedArray& named, const ReadWays& ways) {
  const std::string_view way = short_way(named, ways);
  return {printable(named.name) + ".npy",
          named.array->dtype().text(),
          shape_text(named.array->shape()),
          std::to_string(named.array->nbytes()),
          way.empty() ? storage_text(named) : std::string(way),
          named.format,
          sources_text(named.sources)};
}

std::string attributes_text(const Dict& attributes) {
  std::string names;
  for (const auto& [name, value] : attributes) {
    names += (names.empty() ? "" : ", ") + printable(name);
  }
  return names.empty() ? "no attributes" : names;
}

Value array_value(const NamedArray& named, const ReadWays& ways) {
  List shape;
  for (const std::uint64_t dimension : named.array->shape()) {
    shape.push_back(Value{dimension});
  }
  List sources;
  for (const SourcePtr& source : named.sources) {
    sources.push_back(Value{source->name()});
  }
  Dict array;
  array.push_back({"name", Value{named.name}});
  array.push_back({"dtype", Value{named.array->dtype().text()}});
  array.push_back({"shape", Value{std::move(shape)}});
  array.push_back({"records", Value{named.records}});
  array.push_back({"nbytes", Value{named.array->nbytes()}});
  array.push_back({"storage", Value{storage_text(named)}});
  const std::string_view way = short_way(named, ways);
  array.push_back({"access", Value{std::string(way.empty() ? access_word(named) : way)}});
  array.push_back({"format", Value{named.format}});
  array.push_back({"sources", Value{std::move(sources)}});
  if (!named.attributes.empty()) {
    array.push_back({"attrs", Value{named.attributes}});
  }
  return Value{std::move(array)};
}

void print_arrays(std::string& out, const std::vector<NamedArray>& arrays, const ReadWays& ways) {
  std::vector<std::vector<std::string>> rows = {
      {"array", "dtype", "shape", "bytes", "stored", "format", "from"}};
  for (const NamedArray& array : arrays) {
    rows.push_back(row_of(array, ways));
  }
  out += table_text(rows, "  ");
}

// "attrs  a, b" under a group and under each of its arrays that have any.
void print_own_attributes(std::string& out, const Split& split) {
  if (!split.attributes.empty()) {
    out += fmt::format("  attrs  {}\n", attributes_text(split.attributes));
  }
  for (const NamedArray& array : split.arrays) {
    if (!array.attributes.empty()) {
      out +=
          fmt::format("  {}.attrs  {}\n", printable(array.name), attributes_text(array.attributes));
    }
  }
}

// A split or group and all groups in it; `path` is its own.
void print_directory(std::string& out, const Split& split, const std::string& path,
                     const ReadWays& ways) {
  out += printable(path) + "/";
  if (split.records) {
    out += fmt::format("  {} records", split.records->size());
    // Rows of a store that is cut have no bytes of their own.
    out += split.records->stored().empty()
               ? std::string()
               : fmt::format(", each also in {}/records/", printable(path));
  }
  out += "\n";
  if (!split.arrays.empty()) {
    print_arrays(out, split.arrays, ways);
  }
  print_own_attributes(out, split);
  for (const Split& group : split.groups) {
    print_directory(out, group, path + "/" + group.name, ways);
  }
}

Value arrays_value(const std::vector<NamedArray>& arrays, const ReadWays& ways) {
  List list;
  for (const NamedArray& array : arrays) {
    list.push_back(array_value(array, ways));
  }
  return Value{std::move(list)};
}

// Groups and attributes are named only where there are any.
Value directories_value(const std::vector<Split>& splits, const ReadWays& ways) {
  List list;
  for (const Split& split : splits) {
    Dict about;
    about.push_back({"name", Value{split.name}});
    about.push_back({"records", split.records ? Value{split.records->size()} : Value{}});
    about.push_back({"arrays", arrays_value(split.arrays, ways)});
    if (!split.groups.empty()) {
      about.push_back({"groups", directories_value(split.groups, ways)});
    }
    if (!split.attributes.empty()) {
      about.push_back({"attrs", Value{split.attributes}});
    }
    list.push_back(Value{std::move(about)});
  }
  return Value{std::move(list)};
}

bool has_native(const Dataset& dataset, const ReadWays& ways) {
  bool found = false;
  for_each_array(dataset, [&](const std::string& /*path*/, const NamedArray& array) {
    found = found || could_be_native(array, ways);
  });
  return found;
}

// Those that a mount with the same options would find complete.
std::set<const Array*> find_kept_arrays(const CommandLine& command_line, LoadedDataset& loaded) {
  std::set<const Array*> kept;
  if (command_line.cache_dir.empty() || real_path(command_line.cache_dir).empty() ||
      !why_nothing_is_kept(command_line).empty()) {
    return kept;
  }
  const KeepOptions keep = keep_options(command_line, loaded, print_warning);
  const Tree tree(loaded.dataset, command_line.header_align);
  for_each_array_file(
      tree, [&](Ino /*ino*/, const std::string& path, const std::shared_ptr<const File>& file) {
        const auto array = find_kept(keep, path, *file);
        if (array != nullptr && array->is_complete()) {
          kept.insert(dynamic_cast<const NpyFile&>(*file).array().array.get());
        }
      });
  return kept;
}

}  // namespace

std::string info_text(const Dataset& dataset, const ReadWays& ways) {
  std::string out;
  if (!dataset.arrays.empty()) {
    print_arrays(out, dataset.arrays, ways);
  }
  for (const Split& split : dataset.splits) {
    print_directory(out, split, split.name, ways);
  }
  std::uint64_t total = 0;
  for_each_array(dataset, [&](const std::string& /*path*/, const NamedArray& array) {
    total += array.array->nbytes();
  });
  const std::size_t splits = dataset.splits.size();
  const std::string in_splits =
      splits == 0 ? "" : fmt::format(" in {} split{}", splits, splits == 1 ? "" : "s");
  out += fmt::format("attrs  {}\ntotal  {}{}\n", attributes_text(dataset.attributes),
                     size_text(total), in_splits);
  if (!ways.why_not_native.empty() && has_native(dataset, ways)) {
    out += fmt::format("not native  {}\n", ways.why_not_native);
  }
  return out;
}

std::string info_json(const Dataset& dataset, const ReadWays& ways) {
  Dict all;
  all.push_back({"splits", directories_value(dataset.splits, ways)});
  if (!dataset.arrays.empty()) {
    all.push_back({"arrays", arrays_value(dataset.arrays, ways)});
  }
  all.push_back({"attrs", Value{dataset.attributes}});
  if (!ways.why_not_native.empty() && has_native(dataset, ways)) {
    all.push_back({"not_native", Value{ways.why_not_native}});
  }
  return print_json(Value{std::move(all)});
}

int run_info(const CommandLine& command_line) {
  LoadedDataset loaded(command_line);
  const ReadWays ways{why_no_passthrough(), find_kept_arrays(command_line, loaded)};
  print_all(command_line.json ? info_json(loaded.dataset, ways) : info_text(loaded.dataset, ways));
  return 0;
}

}  // namespace npyfs
