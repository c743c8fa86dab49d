// SPDX-License-Identifier: Apache-2.0

#include "cli/load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cli/source_places.h"
#include "cli/sources.h"
#include "formats/bytes/error.h"
#include "formats/bytes/storage.h"
#include "formats/bytes/unpack.h"
#include "formats/kept_page.h"
#include "formats/registry.h"
#include "index/set_index.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// "max", or a file that is not there, is no limit.
std::uint64_t read_limit(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t nbytes = 0;
  return file >> nbytes ? nbytes : kNoLimit;
}

// The least limit of this process's group and those above it.
std::uint64_t cgroup_limit() {
  std::uint64_t least = read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes");  // version 1
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) {  // version 2
      continue;
    }
    std::string group = line.substr(3);
    while (true) {
      least = std::min(least, read_limit("/sys/fs/cgroup" + group + "/memory.max"));
      if (group.empty()) {
        break;
      }
      group.resize(group.find_last_of('/'));
    }
  }
  return least;
}

using Warn = std::function<void(const std::string&)>;

// What is not there would only be missed where a path is looked for below it.
void require_folder(const std::string& base_dir) {
  if (base_dir.empty()) {
    return;
  }
  std::string fault;
  try {
    switch (open_storage("")->kind_of(base_dir)) {
      case Storage::Kind::kFolder:
        return;
      case Storage::Kind::kNone:
      case Storage::Kind::kDeadLink:
        fault = "No such file or directory";
        break;
      case Storage::Kind::kFile:
      case Storage::Kind::kOther:
        fault = "it is not a directory";
    }
  } catch (const Error& error) {
    fault = error.what();
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("--base-dir {}: {}, expected a directory", printable(base_dir), fault));
}

// Null, with a warning, where the folder may only be read: arrays that are kept there still can be.
std::shared_ptr<Spool> make_spool(const std::string& folder, const Warn& warn) {
  try {
    return Spool::create(folder);
  } catch (const Error& error) {
    const int fault = error.to_errno();
    if (fault != EROFS && fault != EACCES && fault != EPERM) {
      throw;
    }
    warn(fmt::format("--cache-dir: {}; decoded shards are kept in memory", error.what()));
    return nullptr;
  }
}

// Calls a function for every source that it meets the first time.
class OncePerSource {
 public:
  explicit OncePerSource(std::function<void(const SourcePtr&)> call) : call_(std::move(call)) {}

  void visit(const std::vector<SourcePtr>& sources) {
    for (const SourcePtr& source : sources) {
      if (met_.insert(source.get()).second) {
        call_(source);
      }
    }
  }

  void visit(const Dataset& dataset) {
    // The arrays of a split have the same sources.
    const std::vector<SourcePtr>* last = nullptr;
    for_each_array(dataset, [&](const std::string& /*path*/, const NamedArray& array) {
      if (last == nullptr || *last != array.sources) {
        visit(array.sources);
      }
      last = &array.sources;
    });
  }

 private:
  std::function<void(const SourcePtr&)> call_;
  std::unordered_set<const ByteSource*> met_;
};

// What tells the data set from others: its sources as they were named, and where, and what the user
// said that pages depend on.
std::string set_text(const CommandLine& command_line, const OpenContext& context) {
  std::error_code unknown;
  PageKey key = page_key_of(context);
  key.add(std::filesystem::current_path(unknown).string());
  for (const std::string& source : command_line.sources) {
    key.add(source);
  }
  return key.text();
}

std::shared_ptr<SetIndex> open_index(const CommandLine& command_line, const OpenContext& context) {
  return SetIndex::open({.folder = index_folder(command_line),
                         .version = NPYFS_VERSION,
                         .set = set_text(command_line, context),
                         .made_ahead = command_line.index_file,
                         .keeps_all = command_line.verb == Verb::kIndex,
                         .finds_nothing = command_line.dataset.verify == Verify::kMount,
                         .target = command_line.index_target});
}

// No path stands in a file, or none that leads to one that is there.
void note_places(const CommandLine& command_line, const std::vector<OpenedSource>& sources,
                 LoadedDataset& loaded) {
  const auto is_of_names = [](const OpenedSource& source) {
    const Format* format = find_format(source.format);
    return format != nullptr && names_no_paths(*format);
  };
  const auto is_store = [](const OpenedSource& source) { return source.tables.empty(); };
  loaded.are_records = std::none_of(sources.begin(), sources.end(), is_store);
  loaded.may_move = std::all_of(sources.begin(), sources.end(), is_of_names);
  if (!loaded.may_move && !loaded.opened.empty() &&
      std::all_of(sources.begin(), sources.end(), is_store)) {
    const auto named = hashes_of_files(command_line.sources);
    loaded.may_move = std::all_of(
        loaded.opened.begin(), loaded.opened.end(),
        [&](const OpenedFiles::File& file) { return named.count(file.path_hash) != 0; });
  }
}

Dataset load(const CommandLine& command_line, const Verifier& verified, ChunkCache& cache,
             LoadedDataset& loaded, const Warn& warn) {
  std::optional<OpenedFiles> files;
  if (!command_line.cache_dir.empty()) {
    files.emplace();
  }
  OpenContext context;
  context.permissive = command_line.dataset.permissive;
  context.verifier = &verified;
  context.decode = command_line.dataset.fields.decode;
  context.options = command_line.format_options;
  context.warn = warn;
  context.cache = &cache;
  const std::shared_ptr<SetIndex> index = open_index(command_line, context);
  context.index = index;
  context.unpack_pool = std::make_shared<UnpackPool>();
  context.unpack_pool->cache_nbytes = command_line.cache_nbytes.value_or(default_cache_nbytes());
  if (!command_line.cache_dir.empty()) {
    context.unpack_pool->spool = make_spool(command_line.cache_dir, warn);
  }
  require_folder(command_line.base_dir);
  context.base_dir = command_line.base_dir;
  const auto& mount_options = command_line.fuse_options;
  context.confine =
      !command_line.allow_outside &&
      std::find(mount_options.begin(), mount_options.end(), "allow_other") != mount_options.end();
  const std::vector<OpenedSource> sources = open_sources(command_line.sources, context);
  DatasetOptions options = command_line.dataset;
  options.fields.verifier = &verified;
  Dataset dataset = build_dataset(sources, options, warn);
  // What was indexed must still be what is there.
  OncePerSource check([](const SourcePtr& file) { file->check_unchanged(); });
  for (const OpenedSource& source : sources) {
    for (const auto& table : source.tables) {
      check.visit(table->sources());
    }
    for (const StorePtr& store : source.stores) {
      check.visit(store->sources);
    }
  }
  check.visit(dataset);
  loaded.index = index->finish();
  if (files) {
    loaded.opened = files->files();
    note_places(command_line, sources, loaded);
  }
  return dataset;
}

}  // namespace

void print_warning(const std::string& text) {
  std::fprintf(stderr, "npyfs: warning: %s\n", printable(text).c_str());
}

LoadedDataset::LoadedDataset(const CommandLine& command_line, const Warn& warn)
    : verified(command_line.dataset.verify),
      cache(command_line.cache_nbytes.value_or(default_cache_nbytes()), verified),
      dataset(load(command_line, verified, cache, *this, warn)) {}

std::string index_folder(const CommandLine& command_line) {
  return command_line.index_dir ? *command_line.index_dir : default_index_folder();
}

void for_each_source(const Dataset& dataset, const std::function<void(const SourcePtr&)>& visit) {
  OncePerSource(visit).visit(dataset);
}

std::uint64_t default_cache_nbytes() {
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30;
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_nbytes = ::sysconf(_SC_PAGESIZE);
  const std::uint64_t memory =
      pages > 0 && page_nbytes > 0
          ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_nbytes)
          : kMost;
  return std::min(std::min(memory, cgroup_limit()) / 4, kMost);
}

}  // namespace npyfs
