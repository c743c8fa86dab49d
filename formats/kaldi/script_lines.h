// SPDX-License-Identifier: Apache-2.0
//
// The lines of a script: a key and a place in each.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/fault_tally.h"
#include "formats/bytes/string_list.h"
#include "formats/named_files.h"

namespace npyfs {

// Where one record's object lies; 24 bytes.
struct Place {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  std::uint64_t offset = 0;    // of a command: its number
  std::uint32_t file = kNone;  // of the files
  std::uint32_t line = 0;
  std::uint32_t range = kNone;  // of the ranges
  bool whole_file = false;
  bool refused = false;  // there is no record of this line
  bool damaged = false;
  std::uint8_t fault = 0;  // of a damaged one: the number of its kind (FaultKinds)

  bool is_command() const { return file == kNone; }
};

// "<file> line <number>: <text>"
Error line_error(const ByteSource& file, std::uint32_t line, std::string_view text);

// The lines that make no record: of each kind of fault the first is named, the others are counted.
// One thread.
class RefusedLines {
 public:
  RefusedLines(const ByteSource& script, const OpenContext& context)
      : script_(script), context_(context) {}

  void add(Place& place, std::string_view text) { add(place, text, text); }
  void add(Place& place, const Error& error) { add(place, error.said(), error.what()); }
  bool empty() const { return tally_.count() == 0; }
  // Unless there are none: throws kCorrupt; with permissive, says that they are left out.
  void report() const;

 private:
  void add(Place& place, std::string_view said, std::string_view text);

  const ByteSource& script_;
  const OpenContext& context_;
  FaultTally tally_{"lines", "left out"};
};

// The key and place of each line, in order. Built by one thread.
struct ScriptLines {
  StringList keys;
  std::vector<Place> places;
  StringList ranges;
  StringList commands;
};

// Reads a script, opening nothing that it names. Lines that Kaldi would not take are `refused`;
// throws kCorrupt where the file is no script at all.
ScriptLines read_script_lines(const ByteSource& script, const OpenContext& context,
                              NamedFiles& files, RefusedLines& refused);

}  // namespace npyfs
