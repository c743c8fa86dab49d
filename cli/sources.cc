// SPDX-License-Identifier: Apache-2.0

#include "cli/sources.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/found_files.h"
#include "cli/source_spec.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// A data set of thousands of shards keeps a descriptor for each.
void raise_open_file_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

void require_one_format(const FoundFile& first, const FoundFile& other) {
  if (first.format == other.format) {
    return;
  }
  throw Error(ErrorKind::kUnsupported,
              fmt::format("split '{}' has files of two formats, expected one: {} is {}, {} is {}; "
                          "give them to different splits, or name the FORMAT",
                          first.split, printable(first.location.path), first.format->name,
                          printable(other.location.path), other.format->name));
}

// The source's entry for `split`, made where it is the first.
OpenedSource& entry_of(std::vector<OpenedSource>& entries, const FoundFile& file,
                       const SourceSpec& spec) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const OpenedSource& entry) {
    return entry.split == file.split;
  });
  if (found != entries.end()) {
    return *found;
  }
  OpenedSource& entry = entries.emplace_back();
  entry.split = file.split;
  entry.array = spec.array;
  entry.text = spec.text;
  entry.format = file.format->name;
  entry.array_split = file.array_split;
  entry.permissive = spec.permissive;
  return entry;
}

// In a join, --decode calls the main field by the name of the ARRAY.
OpenContext context_for(const SourceSpec& spec, const OpenContext& context) {
  OpenContext own = context;
  own.permissive |= spec.permissive;
  own.keys_sorted = spec.keys_sorted;
  if (!spec.array.empty()) {
    const std::string kind = context.decode_kind(spec.array);
    own.decode.erase("x");
    if (!kind.empty()) {
      own.decode["x"] = kind;
    }
  }
  return own;
}

}  // namespace

std::vector<OpenedSource> open_sources(const std::vector<std::string>& arguments,
                                       OpenContext& context) {
  raise_open_file_limit();
  std::vector<SourceSpec> specs;
  specs.reserve(arguments.size());
  for (const std::string& argument : arguments) {
    specs.push_back(parse_source(argument));
  }

  std::vector<std::vector<FoundFile>> files_of_source;
  std::map<std::pair<std::string, std::string>, FoundFile> first_of_target;
  for (const SourceSpec& spec : specs) {
    files_of_source.push_back(find_files(spec, context));
    for (const FoundFile& file : files_of_source.back()) {
      const auto [first, is_new] = first_of_target.try_emplace({file.split, spec.array}, file);
      if (!is_new) {
        require_one_format(first->second, file);
      }
    }
  }

  std::vector<OpenedSource> opened;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::vector<OpenedSource> entries;
    OpenContext own = context_for(specs[i], context);
    for (const FoundFile& file : files_of_source[i]) {
      OpenedSource& entry = entry_of(entries, file, specs[i]);
      if (file.format->open_store != nullptr) {
        own.split = file.split;
        entry.stores.push_back(file.format->open_store(file.location, own));
      } else {
        entry.tables.push_back(file.format->open(file.location, own));
      }
    }
    std::move(entries.begin(), entries.end(), std::back_inserter(opened));
  }
  return opened;
}

}  // namespace npyfs
