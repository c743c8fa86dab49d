// SPDX-License-Identifier: Apache-2.0
//
// What stands before the colon of Kaldi's "ark,s,cs:file": a kind of table and options.

#pragma once

#include <optional>
#include <string_view>

namespace npyfs {

// What a reader is told; options that say nothing here are not kept.
struct TableSpecifier {
  bool is_script = false;    // scp, not ark
  bool permissive = false;   // p
  bool keys_sorted = false;  // s
};

// The options of formats (OpenContext::options) that Kaldi's tables read: whether keys were
// promised to rise, bytewise, and whether commands may be run.
inline constexpr const char* kKeysSorted = "keys-sorted";
inline constexpr const char* kAllowPipes = "allow-pipes";

// Nothing where `words` ("scp,p") are none that a reader of tables takes. As kaldi-table.cc has it,
// ClassifyRspecifier.
std::optional<TableSpecifier> parse_table_specifier(std::string_view words);

// Whether `words` say how to read or how to write a table ("ark,scp,f"). The same file,
// ClassifyWspecifier.
bool is_table_specifier(std::string_view words);

}  // namespace npyfs
