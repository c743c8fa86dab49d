// SPDX-License-Identifier: Apache-2.0
//
// What mount, fill and info have in common: which arrays of a data set are kept, and where.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "cli/load.h"
#include "fs/kept_arrays.h"
#include "kept/kept_folder.h"

namespace npyfs {

// The option with which no array is kept, and why, in words that follow "nothing is kept with";
// empty: they are.
std::string why_nothing_is_kept(const CommandLine& command_line);

// How the arrays of `loaded`, whose list of opened files this takes, are kept in --cache-dir.
// `npyfs info` makes no folder and changes nothing in it. `tell` gets the folder's troubles, any
// thread. Throws as KeptFolder::open().
KeepOptions keep_options(const CommandLine& command_line, LoadedDataset& loaded,
                         std::function<void(const std::string&)> tell);

// Throws kUsage where a source lies in the cache folder: what is kept would be taken for data.
void require_sources_outside_cache(const CommandLine& command_line, const Dataset& dataset);

// A source that lies below the folder, which is a real path; null where none does.
SourcePtr find_source_below(const Dataset& dataset, const std::string& folder);

// Empty where there is nothing at the path.
std::string real_path(const std::string& path);

}  // namespace npyfs
