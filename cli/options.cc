// SPDX-License-Identifier: Apache-2.0

#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "cli/expand.h"
#include "cli/mount_options.h"
#include "cli/nearest.h"
#include "cli/option_table.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

std::optional<Verb> find_verb(std::string_view word) {
  for (const auto& [name, verb] : verbs()) {
    if (word == name) {
      return verb;
    }
  }
  return std::nullopt;
}

// What CLI11 found, before any of it is understood.
struct Collected {
  std::vector<std::pair<const OptionRow*, std::vector<std::string>>> values;
  std::vector<std::string> mount_options;
  std::vector<std::string> positionals;
  bool help = false;
  bool version = false;
};

[[noreturn]] void refuse_option(const std::string& text) {
  const std::string name = text.substr(0, text.find('='));
  std::vector<std::string> known;
  for (const std::string& long_name : option_names()) {
    known.push_back("--" + long_name);
  }
  known.insert(known.end(), {"--help", "--version"});
  throw Error(ErrorKind::kUsage,
              fmt::format("no such option '{}'{}", name, did_you_mean(name, known)));
}

std::string cli11_name(const OptionRow& row) {
  return row.shorthand != nullptr ? fmt::format("-{},--{}", row.shorthand, row.name)
                                  : fmt::format("--{}", row.name);
}

// CLI11 wants the last argument first.
void run_parser(CLI::App& app, const std::vector<std::string>& arguments) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ArgumentMismatch&) {
    // Only the last argument can lack what should follow it.
    const std::string name = arguments.empty() ? "" : arguments.back();
    const OptionRow* row = name.starts_with("--") ? find_option(name.substr(2)) : nullptr;
    const std::string_view value = name == "-o"                              ? "NAME[=VALUE],..."
                                   : row != nullptr && row->value != nullptr ? row->value
                                                                             : "VALUE";
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has no value, expected {} {}", name, name, value));
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::kUsage, error.what());
  }
}

Collected collect(const std::vector<std::string>& arguments) {
  // Positional arguments come back as CLI11's extras, untouched: a SOURCE such as "[ab]" would else
  // be taken for a list. What follows "--" is never an option.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();

  Collected collected;
  app.add_flag("-h,--help", collected.help);
  app.add_flag("-V,--version", collected.version);
  app.add_option("-o", collected.mount_options)->allow_extra_args(false);
  std::vector<std::pair<const OptionRow*, CLI::Option*>> registered;
  std::vector<std::vector<std::string>> values(option_rows().size());
  for (const OptionRow& row : option_rows()) {
    const std::string name = cli11_name(row);
    CLI::Option* option =
        row.value == nullptr ? app.add_flag(name) : app.add_option(name, values[registered.size()]);
    registered.emplace_back(&row, option->allow_extra_args(false));
  }
  run_parser(app, {arguments.begin(), dashes});

  for (const auto& [row, option] : registered) {
    collected.values.emplace_back(
        row, option->count() == 0 ? std::vector<std::string>() : option->results());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() > 1 && extra.front() == '-') {
      refuse_option(extra);
    }
    collected.positionals.push_back(extra);
  }
  if (dashes != arguments.end()) {
    collected.positionals.insert(collected.positionals.end(), std::next(dashes), arguments.end());
  }
  return collected;
}

void require_place(const OptionRow& row, Verb verb) {
  const std::span<const Verb> takers = verbs_of(row.place);
  if (std::find(takers.begin(), takers.end(), verb) != takers.end()) {
    return;
  }
  std::string names;
  for (const Verb taker : takers) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", verb_name(taker));
  }
  throw Error(ErrorKind::kUsage, fmt::format("--{} belongs to npyfs {}", row.name, names));
}

// A first word that names no file and nearly names a verb has a slip in it.
void refuse_near_verb(const std::string& word) {
  std::vector<std::string> names;
  for (const auto& [name, verb] : verbs()) {
    names.emplace_back(name);
  }
  const std::string hint = did_you_mean(word, names);
  if (!hint.empty() && !path_exists(word)) {
    throw Error(ErrorKind::kUsage, fmt::format("'{}' is neither a verb nor a file{}", word, hint));
  }
}

void settle_view(CommandLine& line) {
  if (line.part) {
    if (!line.view_words.take_part(*line.part)) {
      throw Error(ErrorKind::kUsage, "--part and --rank: expected one of them");
    }
    line.dataset.part_option = "--rank";
  }
  const auto view = line.view_words.view();
  if (!view) {
    throw Error(ErrorKind::kUsage,
                "--block and --epoch say how to --shuffle, --equal how to take a --part: expected "
                "that option, too");
  }
  line.dataset.view = *view;
}

void take_positionals(CommandLine& line, std::vector<std::string> positionals) {
  if (line.verb == Verb::kUmount) {
    line.mountpoints = std::move(positionals);
    if (line.mountpoints.empty()) {
      throw Error(ErrorKind::kUsage, "MOUNTPOINT is missing: npyfs umount MOUNTPOINT...");
    }
    return;
  }
  if (line.verb == Verb::kStats) {
    line.mountpoints = std::move(positionals);
    if (line.mountpoints.size() != 1) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: npyfs stats MOUNTPOINT", line.mountpoints.empty()
                                                                ? "MOUNTPOINT is missing"
                                                                : "more than one MOUNTPOINT"));
    }
    return;
  }
  if (line.verb == Verb::kCache) {
    line.names = std::move(positionals);
    return;
  }
  if (line.verb == Verb::kMount) {
    if (positionals.empty()) {
      throw Error(ErrorKind::kUsage,
                  "SOURCE and MOUNTPOINT are missing: npyfs SOURCE... MOUNTPOINT");
    }
    line.mountpoints = {positionals.back()};
    positionals.pop_back();
  }
  // -o source= may have put some there: they come after these.
  line.sources.insert(line.sources.begin(), positionals.begin(), positionals.end());
  if (line.sources.empty()) {
    throw Error(ErrorKind::kUsage,
                line.verb == Verb::kMount
                    ? fmt::format("SOURCE or MOUNTPOINT is missing, found only '{}'",
                                  line.mountpoints.front())
                    : fmt::format("SOURCE is missing: npyfs {} SOURCE...", verb_name(line.verb)));
  }
}

void require_cache_dir(const CommandLine& line) {
  const bool is_needed = line.verb == Verb::kFill || line.verb == Verb::kCache || line.fill;
  if (is_needed && line.cache_dir.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} needs --cache-dir DIR, the folder where arrays are kept",
                            line.fill ? "--fill" : fmt::format("npyfs {}", verb_name(line.verb))));
  }
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  Collected collected = collect(arguments);
  CommandLine line;
  if (collected.help || collected.version) {
    line.verb = collected.help ? Verb::kHelp : Verb::kVersion;
    return line;
  }
  std::vector<std::string>& positionals = collected.positionals;
  if (const std::optional<Verb> verb =
          positionals.empty() ? std::nullopt : find_verb(positionals.front())) {
    line.verb = *verb;
    positionals.erase(positionals.begin());
  } else if (!positionals.empty()) {
    refuse_near_verb(positionals.front());
  }

  for (const auto& [row, values] : collected.values) {
    if (!values.empty()) {
      require_place(*row, line.verb);
    }
    for (const std::string& value : values) {
      if (row->value == nullptr && value != "true") {
        throw Error(ErrorKind::kUsage, fmt::format("--{} takes no value", row->name));
      }
      apply_option(line, *row, fmt::format("--{}", row->name), value);
    }
  }
  if (line.verb == Verb::kIndex && !collected.mount_options.empty()) {
    if (collected.mount_options.size() > 1) {
      throw Error(ErrorKind::kUsage, "npyfs index: -o stands there twice, expected one FILE");
    }
    line.index_target = std::exchange(collected.mount_options, {}).front();
  }
  if (!collected.mount_options.empty() && line.verb != Verb::kMount) {
    throw Error(ErrorKind::kUsage, "-o belongs to npyfs mount, index");
  }
  for (const std::string& text : collected.mount_options) {
    apply_mount_options(line, text);
  }
  settle_view(line);
  require_cache_dir(line);
  take_positionals(line, std::move(positionals));
  return line;
}

}  // namespace npyfs
