// SPDX-License-Identifier: Apache-2.0

#include "cli/sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/found_files.h"
#include "cli/source_spec.h"
#include "formats/bytes/error.h"
#include "formats/registry.h"

namespace npyfs {

namespace {

// So that many shards stay open.
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
  entry.permissive = spec.said.permissive;
  return entry;
}

// In a join, --decode calls the main field by the name of the ARRAY.
OpenContext context_for(const SourceSpec& spec, const OpenContext& context) {
  OpenContext own = context;
  own.permissive |= spec.said.permissive;
  own.options.insert(spec.said.options.begin(), spec.said.options.end());
  if (!spec.array.empty()) {
    const std::string kind = context.decode_kind(spec.array);
    own.decode.erase("x");
    if (!kind.empty()) {
      own.decode["x"] = kind;
    }
  }
  return own;
}

bool has_decode_kind(const Format& format, const std::string& kind) {
  const auto& kinds = format.decode_kinds;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

std::string formats_with_kind(const std::string& kind) {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    if (has_decode_kind(format, kind)) {
      names.emplace_back(format.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// A kind that a format has is for the main field of its records. Given for anything else it would
// come to nothing.
void require_decode_kind(const std::string& name, const std::string& kind,
                         const std::vector<SourceSpec>& specs,
                         const std::vector<std::vector<FoundFile>>& files_of_source) {
  const std::string owners = formats_with_kind(kind);
  if (owners.empty()) {
    return;
  }
  const auto refusal = [&](const std::string& place) {
    return Error(ErrorKind::kUsage, fmt::format("{}--decode {}={}: only the x of {} can be that",
                                                place, name, kind, owners));
  };
  bool is_met = false;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (name != (specs[i].array.empty() ? "x" : specs[i].array)) {
      continue;
    }
    for (const FoundFile& file : files_of_source[i]) {
      const bool has_records = file.format->open != nullptr;
      if (has_records && !has_decode_kind(*file.format, kind)) {
        throw refusal(printable(file.location.path) + ": ");
      }
      is_met = is_met || has_records;
    }
  }
  if (!is_met) {
    throw refusal("");
  }
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

  for (const auto& [name, kind] : context.decode) {
    require_decode_kind(name, kind, specs, files_of_source);
  }

  std::vector<OpenedSource> opened;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::vector<OpenedSource> entries;
    OpenContext own = context_for(specs[i], context);
    for (FoundFile& file : files_of_source[i]) {
      OpenedSource& entry = entry_of(entries, file, specs[i]);
      file.location.split = file.split;
      if (file.format->open_store != nullptr) {
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
