// SPDX-License-Identifier: Apache-2.0
//
// Every long option: its name, its place in --help and what its value does. The command line, -o
// and the help text are all made from this one table, to which the formats add theirs.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"

namespace npyfs {

struct OptionRow {
  enum class Place { kDataset, kMount, kReport, kStats };

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

// The verbs that take the options of a place, for messages: "info, stats".
std::string_view place_verbs(OptionRow::Place place);

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
