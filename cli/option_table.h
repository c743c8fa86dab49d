// SPDX-License-Identifier: Apache-2.0
//
// Every long option: its name, its place in --help and what its value does. The command line, -o
// and the help text are all made from this one table, to which the formats add theirs.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"

namespace npyfs {

struct OptionRow {
  // Who takes it: verbs_of(). --help has them in this order.
  enum class Place {
    kDataset,  // says which arrays there are, or how they are read
    kFolder,   // the cache folder
    kMount,
    kThreads,
    kReport,  // how findings are printed
    kQuiet,
    kWatch,
    kCache,
  };

  Place place;
  const char* name;       // "dtype"
  const char* value;      // "NAME=DTYPE", null for a flag
  const char* shorthand;  // "f", null for none
  const char* help;       // with its default; lines after the first are indented by the printer
  // `option` is how the user named it ("--dtype", "-o dtype"), for messages.
  std::function<void(CommandLine& command_line, std::string_view option, const std::string& value)>
      apply;
};

std::span<const OptionRow> option_rows();

// The verbs that the options of a place belong to.
std::span<const Verb> verbs_of(OptionRow::Place place);
// The verb as it is typed: "mount". Empty for --help and --version.
std::string_view verb_name(Verb verb);
std::span<const std::pair<std::string_view, Verb>> verbs();

// Applies the option and notes it in CommandLine::shaping, if arrays depend on it.
void apply_option(CommandLine& command_line, const OptionRow& row, std::string_view option,
                  const std::string& value);

// Null where there is none of that name.
const OptionRow* find_option(std::string_view name);

// All names, for "did you mean".
std::vector<std::string> option_names();

// What --help prints.
std::string help_text();

}  // namespace npyfs
