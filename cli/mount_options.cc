// SPDX-License-Identifier: Apache-2.0

#include "cli/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/nearest.h"
#include "cli/option_table.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// What mount(8) may hand on and what says nothing about this mount: it is read-only, has neither
// devices nor programs of its own rights (dev and suid are not granted), and never updates an
// atime.
constexpr std::array<std::string_view, 38> kDropped = {
    "ro",       "rw",         "dev",         "suid",          "exec",     "auto",
    "noauto",   "user",       "nouser",      "users",         "nousers",  "group",
    "nogroup",  "owner",      "noowner",     "_netdev",       "nofail",   "defaults",
    "async",    "sync",       "dirsync",     "atime",         "diratime", "nodiratime",
    "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime", "nolazytime",
    "nonempty", "loud",       "silent",      "symfollow",     "iversion", "noiversion",
    "mand",     "nomand"};

// Flags that the kernel or libfuse understands.
constexpr std::array<std::string_view, 8> kPassedFlags = {
    "noatime",     "nodev",      "nosuid",       "noexec",
    "allow_other", "allow_root", "auto_unmount", "default_permissions"};

// npyfs's own: it reads itself what the kernel could read without it.
constexpr std::string_view kNoPassthrough = "no_passthrough";

template <typename Words, typename Word>
bool contains(const Words& words, const Word& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Dropped whatever their value: mount(8)'s own, and what npyfs says itself.
bool is_dropped(std::string_view name) {
  return contains(kDropped, name) || name == "comment" || name == "subtype" ||
         name.starts_with("x-") || name.starts_with("X-");
}

void apply_long_option(CommandLine& command_line, const OptionRow& row, bool has_value,
                       const std::string& value) {
  const std::span<const Verb> takers = verbs_of(row.place);
  if (!contains(takers, Verb::kMount)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("-o {}: belongs to npyfs {}", row.name, verb_name(takers.front())));
  }
  if (has_value != (row.value != nullptr)) {
    throw Error(ErrorKind::kUsage,
                row.value != nullptr
                    ? fmt::format("-o {}: expected a value, {}={}", row.name, row.name, row.value)
                    : fmt::format("-o {}: takes no value, found '{}'", row.name, value));
  }
  apply_option(command_line, row, fmt::format("-o {}", row.name), value);
}

[[noreturn]] void refuse(std::string_view name) {
  std::vector<std::string> known = option_names();
  known.insert(known.end(), kPassedFlags.begin(), kPassedFlags.end());
  for (const std::string_view more : {std::string_view("source"), std::string_view("fsname"),
                                      std::string_view("max_read"), kNoPassthrough}) {
    known.emplace_back(more);
  }
  const std::string hint = did_you_mean(name, known);
  throw Error(ErrorKind::kUsage,
              fmt::format("-o {}: no such option{}", name,
                          hint.empty() ? "; a comma within a value is written \\," : hint));
}

void apply_one(CommandLine& command_line, const std::string& text) {
  const std::size_t mark = text.find('=');
  const bool has_value = mark != std::string::npos;
  const std::string name = text.substr(0, mark);
  const std::string value = has_value ? text.substr(mark + 1) : std::string();
  if (const OptionRow* row = find_option(name)) {
    apply_long_option(command_line, *row, has_value, value);
  } else if (name == "source" && has_value) {
    command_line.sources.push_back(value);
  } else if (text == kNoPassthrough) {
    command_line.passthrough = false;
  } else if (name == "fsname" && has_value) {
    command_line.device = value;
  } else if (has_value ? name == "max_read" : contains(kPassedFlags, name)) {
    command_line.fuse_options.push_back(text);
  } else if (!is_dropped(name)) {
    refuse(name);
  }
}

}  // namespace

std::vector<std::string> split_mount_options(std::string_view text) {
  std::vector<std::string> parts(1);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool escaped =
        text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == ',' || text[at + 1] == '\\');
    if (escaped) {
      parts.back() += text[++at];
    } else if (text[at] == ',') {
      parts.emplace_back();
    } else {
      parts.back() += text[at];
    }
  }
  std::erase(parts, std::string());
  return parts;
}

void apply_mount_options(CommandLine& command_line, std::string_view text) {
  for (const std::string& part : split_mount_options(text)) {
    apply_one(command_line, part);
  }
}

}  // namespace npyfs
