// SPDX-License-Identifier: Apache-2.0

#include "cli/cache.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/load.h"
#include "cli/output.h"
#include "cli/sizes.h"
#include "formats/bytes/error.h"
#include "formats/bytes/value.h"
#include "fs/kept_arrays.h"

namespace npyfs {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// Fewer digits of a file's name mean nothing: they could be a word.
constexpr std::size_t kLeastDigits = 4;

std::string local_time(std::int64_t ns) {
  const std::time_t seconds = ns / kSecond;
  std::tm time{};
  return ns == 0 || ::localtime_r(&seconds, &time) == nullptr
             ? "-"
             : fmt::format("{:%Y-%m-%d %H:%M:%S}", time);
}

std::string_view state_of(const KeptRow& row) {
  return !row.fault.empty() ? "bad" : row.is_complete ? "complete" : "part";
}

// What is said of it in the table.
std::string state_text(const KeptRow& row) {
  if (!row.fault.empty()) {
    return row.fault;
  }
  return fmt::format("{}{}", state_of(row), row.is_open ? ", in use" : "");
}

bool is_meant(const CommandLine& command_line, const KeptRow& row) {
  const std::vector<std::string>& names = command_line.names;
  return names.empty() || std::any_of(names.begin(), names.end(),
                                      [&](const std::string& name) { return is_named(row, name); });
}

void require_all_found(const CommandLine& command_line, const std::vector<KeptRow>& rows) {
  for (const std::string& name : command_line.names) {
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const KeptRow& row) { return is_named(row, name); })) {
      throw file_error(
          ErrorKind::kNotFound, command_line.cache_dir,
          fmt::format("no array '{}' is kept; npyfs cache --list shows what is", printable(name)));
    }
  }
}

std::vector<KeptRow> find_rows(const CommandLine& command_line, const KeptFolder& folder) {
  std::vector<KeptRow> rows = list_kept(folder);
  std::erase_if(rows, [&](const KeptRow& row) { return !is_meant(command_line, row); });
  require_all_found(command_line, rows);
  return rows;
}

void check(const CommandLine& command_line, KeptFolder& folder, std::vector<KeptRow>& rows) {
  std::uint64_t of_nbytes = 0;
  for (const KeptRow& row : rows) {
    of_nbytes += row.kept_nbytes;
  }
  std::uint64_t nbytes = 0;
  Progress progress("checked", !command_line.json);
  check_kept(folder, rows, [&](std::uint64_t more) {
    nbytes += more;
    progress.show(nbytes, of_nbytes);
  });
}

}  // namespace

bool is_named(const KeptRow& row, const std::string& name) {
  const KeptLabel label = parse_label(row.label);
  return name == label.path || name + ".npy" == label.path || name == label.source ||
         (name.size() >= kLeastDigits && row.name.starts_with(name));
}

std::string kept_text(const std::vector<KeptRow>& rows) {
  std::vector<std::vector<std::string>> cells = {
      {"array", "kept", "of", "state", "last used", "file", "from"}};
  std::uint64_t disk_nbytes = 0;
  for (const KeptRow& row : rows) {
    const KeptLabel label = parse_label(row.label);
    cells.push_back({printable(label.path), short_size(row.kept_nbytes), short_size(row.nbytes),
                     state_text(row), local_time(row.used_at_ns), row.name,
                     printable(label.source)});
    disk_nbytes += row.disk_nbytes;
  }
  return (rows.empty() ? "" : table_text(cells, "")) +
         fmt::format("{} array{}, {} on the disk\n", rows.size(), rows.size() == 1 ? "" : "s",
                     short_size(disk_nbytes));
}

std::string kept_json(const std::vector<KeptRow>& rows) {
  List list;
  for (const KeptRow& row : rows) {
    const KeptLabel label = parse_label(row.label);
    Dict about;
    about.push_back({"array", Value{label.path}});
    about.push_back({"source", Value{label.source}});
    about.push_back({"name", Value{row.name}});
    about.push_back({"state", Value{std::string(state_of(row))}});
    about.push_back({"nbytes", Value{row.nbytes}});
    about.push_back({"kept_nbytes", Value{row.kept_nbytes}});
    about.push_back({"disk_nbytes", Value{row.disk_nbytes}});
    about.push_back({"used_at", Value{static_cast<double>(row.used_at_ns) / kSecond}});
    about.push_back({"open", Value{row.is_open}});
    if (!row.fault.empty()) {
      about.push_back({"fault", Value{row.fault}});
    }
    list.push_back(Value{std::move(about)});
  }
  return print_json(Value{std::move(list)});
}

int run_cache(const CommandLine& command_line) {
  const CacheAction action = command_line.cache_action;
  KeptOptions options;
  options.access =
      action == CacheAction::kList ? KeptOptions::Access::kReads : KeptOptions::Access::kWrites;
  options.tell = [](const std::string& text) { print_warning(text); };
  const auto folder = KeptFolder::open(command_line.cache_dir, std::move(options));
  std::vector<KeptRow> rows = find_rows(command_line, *folder);
  if (action == CacheAction::kDrop) {
    if (folder->is_read_only()) {
      throw file_error(ErrorKind::kIo, command_line.cache_dir,
                       "the cache folder may not be written to, so nothing can be dropped");
    }
    rows = drop_kept(*folder, [&](const KeptRow& row) { return is_meant(command_line, row); });
  } else if (action == CacheAction::kCheck) {
    check(command_line, *folder, rows);
  }
  print_all(command_line.json ? kept_json(rows) : kept_text(rows));
  const bool is_any_bad =
      std::any_of(rows.begin(), rows.end(), [](const KeptRow& row) { return !row.fault.empty(); });
  return is_any_bad && action != CacheAction::kList ? 1 : 0;
}

}  // namespace npyfs
