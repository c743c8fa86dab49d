// SPDX-License-Identifier: Apache-2.0

#include "cli/keep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/mount_table.h"
#include "cli/source_places.h"
#include "formats/bytes/error.h"
#include "formats/bytes/local_storage.h"
#include "formats/bytes/paths.h"
#include "formats/registry.h"

namespace npyfs {

namespace {

// Real paths of files, most of which lie in the folder of the one before.
class RealPaths {
 public:
  std::string find(const std::string& path) {
    const std::string folder = folder_of_path(path);
    if (folder != folder_) {
      folder_ = folder;
      real_folder_ = real_path(folder);
    }
    char link = 0;
    const bool is_no_link = ::readlink(path.c_str(), &link, 1) < 0 && errno == EINVAL;
    return is_no_link && !real_folder_.empty() ? join_keys(real_folder_, name_of_path(path))
                                               : real_path(path);
  }

 private:
  std::string folder_;
  std::string real_folder_;
};

// What arrays depend on besides the files that were opened.
std::string shaping_text(const CommandLine& command_line, const std::string& sources) {
  const auto lines_of = [](const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
      text += fmt::format("{}:{}", line.size(), line);
    }
    return text;
  };
  std::string text = sources + "\n" + lines_of(command_line.shaping);
  // With --permissive it decides which records there are.
  text += command_line.dataset.verify == Verify::kMount ? "\nverify=mount" : "";
  // What stands in files that options name.
  for (const auto& [name, values] : command_line.format_options) {
    text += fmt::format("\n{}:{}{}", name.size(), name, lines_of(values));
  }
  for (const auto& [split, keys] : command_line.dataset.split_rule.lists) {
    text += fmt::format("\n{}:{}{}", split.size(), split, lines_of(keys));
  }
  return text;
}

// The option with which nobody can tell whether arrays are still the same; null: there is none.
const char* volatile_option(const CommandLine& command_line) {
  for (const Format& format : formats()) {
    for (const FormatOption& option : format.options) {
      if (option.makes_volatile && command_line.format_options.count(option.name) != 0) {
        return option.name;
      }
    }
  }
  return nullptr;
}

// Where records have one split, it is but a name, which stands in no array. Nothing is cut by it.
std::string only_split(const CommandLine& command_line, const LoadedDataset& loaded) {
  const Dataset& dataset = loaded.dataset;
  const SplitRule& rule = command_line.dataset.split_rule;
  const bool is_only = loaded.may_move && loaded.are_records && dataset.splits.size() == 1 &&
                       dataset.arrays.empty() && dataset.splits[0].groups.empty() &&
                       rule.shares.empty() && rule.lists.empty() &&
                       splits_of_sources(command_line.sources) <= 1;
  return is_only ? printable(dataset.splits[0].name) : "";
}

// The paths of sources from the folder on, by their path_hash; none where no folder is meant.
std::unordered_map<std::uint64_t, std::string> places_from(const std::string& folder,
                                                           const Dataset& dataset) {
  std::unordered_map<std::uint64_t, std::string> places;
  if (folder.empty()) {
    return places;
  }
  for_each_array(dataset, [&](const std::string& /*path*/, const NamedArray& array) {
    for (const SourcePtr& source : array.sources) {
      const std::string path = source->path();
      const auto [place, is_new] = places.try_emplace(std::hash<std::string>()(path));
      if (is_new) {
        place->second = path_from(path, folder);
      }
    }
  });
  return places;
}

KeptOptions folder_options(const CommandLine& command_line,
                           std::function<void(const std::string&)> tell) {
  KeptOptions options;
  options.access =
      command_line.verb == Verb::kInfo ? KeptOptions::Access::kReads : KeptOptions::Access::kMakes;
  options.most_nbytes = command_line.cache_dir_nbytes;
  options.tell = std::move(tell);
  if (command_line.verb == Verb::kFill || command_line.fill) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    options.spared_since_ns = std::chrono::nanoseconds(now).count();
  }
  return options;
}

}  // namespace

std::string why_nothing_is_kept(const CommandLine& command_line) {
  if (const char* option = volatile_option(command_line)) {
    return fmt::format("--{}, as nobody can tell whether arrays are still the same", option);
  }
  if (command_line.dataset.verify == Verify::kNever) {
    return "--verify=never, as others would take it for verified";
  }
  return {};
}

KeepOptions keep_options(const CommandLine& command_line, LoadedDataset& loaded,
                         std::function<void(const std::string&)> tell) {
  KeepOptions keep;
  keep.folder =
      KeptFolder::open(command_line.cache_dir, folder_options(command_line, std::move(tell)));
  keep.version = NPYFS_VERSION;
  keep.only_split = only_split(command_line, loaded);
  const std::string folder = loaded.may_move ? folder_of_sources(command_line.sources) : "";
  std::string depends_on = shaping_text(
      command_line, text_of_sources(command_line.sources, folder, keep.only_split.empty()));
  // Paths that stand in a file may begin where the program was started.
  depends_on += loaded.may_move ? "" : "\n" + absolute_path_of("");
  const std::unordered_map<std::uint64_t, std::string> places = places_from(folder, loaded.dataset);
  // A million of them are no longer needed once the mount serves.
  for (const OpenedFiles::File& file : std::exchange(loaded.opened, {})) {
    const auto place = places.find(file.path_hash);
    depends_on +=
        place != places.end()
            ? fmt::format("\n{} {}:{}", file.identity.text(), place->second.size(), place->second)
            : fmt::format("\n{} {:x}", file.identity.text(), file.path_hash);
  }
  keep.dataset = sha256(depends_on);
  return keep;
}

void require_sources_outside_cache(const CommandLine& command_line, const Dataset& dataset) {
  const std::string folder = real_path(command_line.cache_dir);
  // There may be none yet.
  const SourcePtr source = folder.empty() ? nullptr : find_source_below(dataset, folder);
  if (source != nullptr) {
    throw file_error(ErrorKind::kUsage, command_line.cache_dir,
                     fmt::format("the source {} lies in the cache folder; take another --cache-dir",
                                 printable(source->name())));
  }
}

std::string real_path(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  std::string real = resolved != nullptr ? resolved : "";
  std::free(resolved);
  return real;
}

SourcePtr find_source_below(const Dataset& dataset, const std::string& folder) {
  SourcePtr found;
  RealPaths paths;
  for_each_source(dataset, [&](const SourcePtr& source) {
    if (found == nullptr && lies_below(paths.find(source->path()), folder)) {
      found = source;
    }
  });
  return found;
}

}  // namespace npyfs
