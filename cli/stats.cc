// SPDX-License-Identifier: Apache-2.0

#include "cli/stats.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/mount_table.h"
#include "cli/output.h"
#include "cli/sizes.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

constexpr std::array<const char*, 4> kWays = {"mapped", "cached", "decoded", "kept"};
constexpr unsigned kWatchSeconds = 1;

// What stands under "reads.mapped.bytes"; null where nothing does.
const Value* find_value(const Value& all, std::string_view path) {
  const auto* dict = std::get_if<Dict>(&all.v);
  const std::size_t dot = path.find('.');
  for (std::size_t i = 0; dict != nullptr && i < dict->size(); ++i) {
    if ((*dict)[i].name == path.substr(0, dot)) {
      const Value& found = (*dict)[i].value;
      return dot == std::string_view::npos ? &found : find_value(found, path.substr(dot + 1));
    }
  }
  return nullptr;
}

// A number; nothing where there is none, or null.
std::optional<double> find_number(const Value& all, const std::string& path) {
  const Value* value = find_value(all, path);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value->v)) {
    return static_cast<double>(*whole);
  }
  if (const auto* large = std::get_if<std::uint64_t>(&value->v)) {
    return static_cast<double>(*large);
  }
  const auto* real = std::get_if<double>(&value->v);
  return real != nullptr ? std::optional(*real) : std::nullopt;
}

double number(const Value& all, const std::string& path) {
  const std::optional<double> found = find_number(all, path);
  if (!found) {
    throw Error(ErrorKind::kCorrupt,
                fmt::format(".npyfs/stats: {} is missing, expected a number; is npyfs as new as "
                            "the mount's?",
                            path));
  }
  return *found;
}

std::string text_of(const Value& all, std::string_view path) {
  const Value* value = find_value(all, path);
  const auto* text = value != nullptr ? std::get_if<std::string>(&value->v) : nullptr;
  return text != nullptr ? printable(*text) : "";
}

std::string count_text(double count) { return fmt::format("{:.0f}", count); }
std::string size_text(double nbytes) {
  return short_size(static_cast<std::uint64_t>(std::llround(nbytes)));
}

// "420 ns", "1.3 us", "25 ms"; "-" for nothing.
std::string time_text(std::optional<double> seconds) {
  if (!seconds) {
    return "-";
  }
  constexpr std::array<const char*, 4> kUnits = {"ns", "us", "ms", "s"};
  double value = *seconds * 1e9;
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return value < 9.95 && unit > 0 ? fmt::format("{:.1f} {}", value, kUnits[unit])
                                  : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

// "87.5 %"; "no" of nothing.
std::string share_text(double part, double all) {
  return all == 0 ? "no" : fmt::format("{:.1f} %", 100 * part / all);
}

// "2 h 5 min", "14 s".
std::string duration_text(double seconds) {
  const auto all = static_cast<std::uint64_t>(seconds);
  if (all < 60) {
    return fmt::format("{} s", all);
  }
  if (all < 3600) {
    return fmt::format("{} min {} s", all / 60, all % 60);
  }
  return all < 86400 ? fmt::format("{} h {} min", all / 3600, all / 60 % 60)
                     : fmt::format("{} d {} h", all / 86400, all / 3600 % 24);
}

// What a figure grew by in each second between two moments.
double rate(const Value& now, const Value& before, const std::string& path) {
  const double seconds = number(now, "uptime_seconds") - number(before, "uptime_seconds");
  return (number(now, path) - number(before, path)) / std::max(seconds, 1e-3);
}

// Whether both are of one mount: it may have been made anew at the same place.
bool is_one_mount(const Value& now, const Value& before) {
  return number(now, "start_time_seconds") == number(before, "start_time_seconds");
}

std::vector<std::string> read_row(const std::string& name, const Value& now, const Value* before,
                                  const std::string& path) {
  std::vector<std::string> row = {name, count_text(number(now, path + ".requests")),
                                  size_text(number(now, path + ".bytes"))};
  if (before != nullptr) {
    row.push_back(count_text(rate(now, *before, path + ".requests")));
    row.push_back(size_text(rate(now, *before, path + ".bytes")));
  }
  for (const char* share : {".seconds.p50", ".seconds.p99", ".seconds.max"}) {
    row.push_back(time_text(find_number(now, path + share)));
  }
  return row;
}

std::string reads_text(const Value& now, const Value* before) {
  std::vector<std::vector<std::string>> rows = {{"reads", "requests", "bytes"}};
  if (before != nullptr) {
    rows.front().insert(rows.front().end(), {"requests/s", "bytes/s"});
  }
  rows.front().insert(rows.front().end(), {"p50", "p99", "longest"});
  for (const char* way : kWays) {
    const std::string path = fmt::format("reads.{}", way);
    if (number(now, path + ".requests") > 0) {
      rows.push_back(read_row(way, now, before, path));
    }
  }
  rows.push_back(read_row("all", now, before, "reads"));
  return table_text(rows, "");
}

std::string cache_text(const Value& now) {
  const double hits = number(now, "cache.hits");
  // What was decoded ahead counts once somebody asks for it, as a hit.
  const double loads = number(now, "cache.loads") - number(now, "read_ahead.issued");
  const double all = hits + number(now, "cache.waits") + std::max(loads, 0.0);
  return fmt::format("{} hits, {} decoded, {} of {} in use", share_text(hits, all),
                     size_text(number(now, "cache.decoded_bytes")),
                     size_text(number(now, "cache.held_bytes")),
                     size_text(number(now, "cache.capacity_bytes")));
}

std::string kept_text(const Value& now) {
  const double hits = number(now, "kept.read_hits");
  return fmt::format(
      "{} hits, {} read, {} blocks written, {} dropped, {} bad",
      share_text(hits, hits + number(now, "kept.read_misses")),
      size_text(number(now, "kept.read_bytes")), count_text(number(now, "kept.blocks_written")),
      count_text(number(now, "kept.blocks_dropped")), count_text(number(now, "kept.blocks_bad")));
}

std::string errors_text(const Value& now) {
  std::string text;
  const Value* errors = find_value(now, "errors");
  const auto* kinds = errors != nullptr ? std::get_if<Dict>(&errors->v) : nullptr;
  for (std::size_t i = 0; kinds != nullptr && i < kinds->size(); ++i) {
    const std::string& kind = (*kinds)[i].name;
    if (const double count = number(*errors, kind); count > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count_text(count), kind);
    }
  }
  return text.empty() ? "none" : text + "; .npyfs/errors names them";
}

// "2 native, 1 kept".
std::string arrays_text(const Value& now) {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  const Value* arrays = find_value(now, "arrays");
  const auto* list = arrays != nullptr ? std::get_if<List>(&arrays->v) : nullptr;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string access = text_of((*list)[i], "access");
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& one) { return one.first == access; });
    if (known == counts.end()) {
      counts.emplace_back(access, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [access, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, access);
  }
  const double left_out = number(now, "arrays_left_out");
  return left_out == 0 ? text : fmt::format("{}, and {} more", text, count_text(left_out));
}

double count_errors(const Value& now) {
  double count = 0;
  const Value* errors = find_value(now, "errors");
  const auto* kinds = errors != nullptr ? std::get_if<Dict>(&errors->v) : nullptr;
  for (std::size_t i = 0; kinds != nullptr && i < kinds->size(); ++i) {
    count += number(*errors, (*kinds)[i].name);
  }
  return count;
}

// The mount that the path is, or lies in. A dead one is not looked into.
std::string find_mountpoint(const std::string& shown) {
  const std::vector<MountEntry> table = read_mount_table();
  std::string path = absolute_mountpoint(shown);
  std::optional<MountEntry> holder = find_mount(table, path);
  if (!holder) {
    path = absolute_path(shown);
    for (const MountEntry& entry : table) {
      if (lies_below(path, entry.mountpoint) &&
          (!holder || entry.mountpoint.size() >= holder->mountpoint.size())) {
        holder = entry;
      }
    }
  }
  if (!holder || holder->type != "fuse.npyfs") {
    throw file_error(ErrorKind::kNotFound, shown,
                     fmt::format("lies in no npyfs mount but on {}; /proc/mounts lists those that "
                                 "there are",
                                 holder ? printable(holder->type) : "nothing"));
  }
  return holder->mountpoint;
}

std::string read_stats(const std::string& mountpoint) {
  const std::string path = mountpoint + "/.npyfs/stats";
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(file && text << file.rdbuf())) {
    const int fault = errno != 0 ? errno : EIO;
    if (fault == ENOTCONN || fault == ECONNABORTED) {
      throw file_error(ErrorKind::kIo, mountpoint,
                       fmt::format("the mount's server is gone; npyfs umount '{}' first",
                                   printable(mountpoint)));
    }
    throw system_error(path, "read", fault);
  }
  return text.str();
}

Value parse_stats(const std::string& mountpoint, const std::string& text) {
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw file_error(ErrorKind::kCorrupt, mountpoint + "/.npyfs/stats", error.what());
  }
}

void wait_a_second() {
  const timespec pause{kWatchSeconds, 0};
  ::nanosleep(&pause, nullptr);
}

// On a terminal the table takes the place of the one before; elsewhere it is a line a second.
void watch(const std::string& mountpoint, Value before) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (is_terminal) {
    print_all("\033[H\033[2J" + stats_text(before, nullptr));
  }
  while (true) {
    wait_a_second();
    const Value now = parse_stats(mountpoint, read_stats(mountpoint));
    if (is_one_mount(now, before)) {
      print_all(is_terminal ? "\033[H\033[J" + stats_text(now, &before) : stats_line(now, before));
    }
    before = now;
  }
}

}  // namespace

std::string stats_text(const Value& now, const Value* before) {
  std::string out =
      fmt::format("{}: npyfs {}, mounted for {}\n\n", text_of(now, "mountpoint"),
                  text_of(now, "version"), duration_text(number(now, "uptime_seconds")));
  out += reads_text(now, before) + "\n";
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"opens", fmt::format("{} by npyfs, {} by the kernel itself",
                                       count_text(number(now, "requests.open.requests")),
                                       count_text(number(now, "requests.open_native.requests")))});
  rows.push_back({"cache", cache_text(now)});
  rows.push_back({"read-ahead", fmt::format("{} chunks, {} used, {} wasted",
                                            count_text(number(now, "read_ahead.issued")),
                                            count_text(number(now, "read_ahead.used")),
                                            count_text(number(now, "read_ahead.wasted")))});
  if (find_value(now, "kept") != nullptr) {
    rows.push_back({"kept", kept_text(now)});
  }
  rows.push_back({"arrays", arrays_text(now)});
  const std::string why_not = text_of(now, "native.why_not");
  rows.push_back({"native", why_not.empty() ? "possible" : "not possible: " + why_not});
  rows.push_back({"errors", errors_text(now)});
  return out + table_text(rows, "");
}

std::string stats_line(const Value& now, const Value& before) {
  return fmt::format("{}/s read in {}/s, {}/s decoded, p99 {}, {} errors\n",
                     size_text(rate(now, before, "reads.bytes")),
                     count_text(rate(now, before, "reads.requests")),
                     size_text(rate(now, before, "cache.decoded_bytes")),
                     time_text(find_number(now, "reads.seconds.p99")),
                     count_text(count_errors(now) - count_errors(before)));
}

int run_stats(const CommandLine& command_line) {
  const std::string mountpoint = find_mountpoint(command_line.mountpoints.front());
  const std::string text = read_stats(mountpoint);
  if (command_line.json) {
    print_all(text);
    while (command_line.watch) {
      wait_a_second();
      print_all(read_stats(mountpoint));
    }
    return 0;
  }
  Value now = parse_stats(mountpoint, text);
  if (command_line.watch) {
    watch(mountpoint, std::move(now));
  } else {
    print_all(stats_text(now, nullptr));
  }
  return 0;
}

}  // namespace npyfs
