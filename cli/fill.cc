// SPDX-License-Identifier: Apache-2.0

#include "cli/fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/keep.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/sizes.h"
#include "formats/bytes/error.h"
#include "formats/bytes/value.h"
#include "fs/fetch.h"
#include "fs/fill_tasks.h"
#include "fs/tree.h"
#include "kept/fill_arrays.h"

namespace npyfs {

namespace {

volatile std::sig_atomic_t ended_by = 0;

void note_signal(int number) { ended_by = number; }

// SIGINT and SIGTERM are noted as long as it lives; those that are ignored stay so.
class NotedSignals {
 public:
  NotedSignals() {
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      before_[i] = std::signal(kNumbers[i], note_signal);
      if (before_[i] == SIG_IGN) {
        std::signal(kNumbers[i], SIG_IGN);
      }
    }
  }
  ~NotedSignals() {
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      std::signal(kNumbers[i], before_[i]);
    }
  }
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;

 private:
  static constexpr std::array<int, 3> kNumbers = {SIGINT, SIGTERM, SIGHUP};
  std::array<void (*)(int), kNumbers.size()> before_{};
};

// One array of the data set, and what has become of it.
struct Row {
  std::string path;
  std::uint64_t nbytes = 0;
  std::optional<NotKept> not_kept{};
  std::optional<FillResult> result{};  // nothing: nobody has begun with it
};

struct Work {
  std::vector<Row> rows;
  std::vector<FillTask> tasks;
  std::vector<std::size_t> row_of_task;
};

Work plan_work(const Tree& tree, const Fetcher& fetcher, const KeepOptions& keep) {
  Work work;
  for_each_array_file(
      tree, [&](Ino /*ino*/, const std::string& path, const std::shared_ptr<const File>& file) {
        Row row{path, file->nbytes(), why_not_kept(*file)};
        if (!row.not_kept && !kept_key(keep, path, *file)) {
          row.not_kept = NotKept{"nobody can tell whether its sources are still the same"};
        }
        if (!row.not_kept) {
          work.row_of_task.push_back(work.rows.size());
          work.tasks.push_back({path, file->nbytes(),
                                [&keep, path, file] { return open_kept(keep, path, *file); },
                                [&fetcher, file](std::uint64_t offset, std::span<std::byte> out) {
                                  read_as_mounted(fetcher, *file, offset, out);
                                }});
        }
        work.rows.push_back(std::move(row));
      });
  return work;
}

std::string_view state_of(const Row& row) {
  if (row.not_kept) {
    return row.not_kept->is_needless ? "needless" : "not kept";
  }
  if (!row.result) {
    return "not begun";
  }
  switch (row.result->end) {
    case FillEnd::kComplete:
      return "complete";
    case FillEnd::kDamaged:
      return "damaged";
    case FillEnd::kStopped:
      return "stopped";
    case FillEnd::kChanged:
      return "changed";
    case FillEnd::kNoRoom:
      return "no room";
    case FillEnd::kFailed:
    case FillEnd::kDropped:
    case FillEnd::kBusy:
      return "failed";
  }
  return {};
}

bool is_lacking(const Row& row) {
  return row.not_kept ? !row.not_kept->is_needless
                      : !row.result || row.result->end != FillEnd::kComplete;
}

// Why it is not complete; nothing where that is told otherwise, for many arrays at once.
std::string fault_of(const Row& row) {
  if (!row.result) {
    return {};
  }
  const FillResult& result = *row.result;
  switch (result.end) {
    case FillEnd::kDamaged:
      return fmt::format(
          "{} block{} of 2 MiB cannot be read, so the array stays in part; first: {}",
          result.unread_blocks, result.unread_blocks == 1 ? "" : "s", result.why);
    case FillEnd::kChanged:
      // What to do about it is another thing here than in a mount.
      return fmt::format("{}; run it again to keep what is there now",
                         result.why.substr(0, result.why.rfind("; ")));
    case FillEnd::kDropped:
      return "somebody has removed it from the cache folder meanwhile; run it again";
    case FillEnd::kBusy:
      return "another process was writing to it all the time; run it again";
    case FillEnd::kFailed:
      return "it could not be written to the cache folder, or there is no memory";
    default:
      return {};
  }
}

// "train/a.npy, train/b.npy and 3 more".
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

// A line for each reason.
void tell_what_is_not_kept(const std::vector<Row>& rows, bool is_quiet) {
  std::map<std::pair<bool, std::string>, std::vector<std::string>> by_reason;
  for (const Row& row : rows) {
    if (row.not_kept && !row.not_kept->why.empty()) {
      by_reason[{row.not_kept->is_needless, row.not_kept->why}].push_back(row.path);
    }
  }
  for (const auto& [reason, names] : by_reason) {
    const auto& [is_needless, why] = reason;
    if (!is_needless) {
      print_warning(fmt::format("not kept: {}: {}", names_text(names), why));
    } else if (!is_quiet) {
      std::fprintf(stderr, "npyfs: not kept: %s: %s\n", names_text(names).c_str(), why.c_str());
    }
  }
}

void tell_of_room(const CommandLine& command_line, const std::vector<Row>& rows) {
  std::uint64_t lacking = 0;
  bool is_full = false;
  for (const Row& row : rows) {
    is_full = is_full || (row.result && row.result->end == FillEnd::kNoRoom);
    lacking += !row.not_kept && is_lacking(row) ? 1 : 0;
  }
  if (is_full) {
    // That it is full the folder has told.
    print_warning(
        fmt::format("{}: {} array{} not complete; make room on the disk, drop others "
                    "(npyfs cache --drop) or give it more (--cache-dir-size)",
                    command_line.cache_dir, lacking, lacking == 1 ? " is" : "s are"));
  }
}

std::string result_json(const std::vector<Row>& rows) {
  List list;
  for (const Row& row : rows) {
    Dict about;
    about.push_back({"array", Value{row.path}});
    about.push_back({"nbytes", Value{row.nbytes}});
    about.push_back({"state", Value{std::string(state_of(row))}});
    const std::string why = row.not_kept ? row.not_kept->why : fault_of(row);
    if (!why.empty()) {
      about.push_back({"why", Value{why}});
    }
    if (row.result && row.result->unread_blocks > 0) {
      about.push_back({"unread_blocks", Value{row.result->unread_blocks}});
    }
    list.push_back(Value{std::move(about)});
  }
  return print_json(Value{std::move(list)});
}

std::string result_text(const std::vector<Row>& rows) {
  std::uint64_t of = 0;
  std::uint64_t complete = 0;
  std::uint64_t before = 0;
  std::uint64_t nbytes = 0;
  for (const Row& row : rows) {
    of += row.not_kept ? 0 : 1;
    if (row.result && row.result->end == FillEnd::kComplete) {
      ++complete;
      before += row.result->was_complete ? 1 : 0;
      nbytes += row.nbytes;
    }
  }
  return fmt::format("{} of {} array{} complete ({}), {} of them before\n", complete, of,
                     of == 1 ? "" : "s", short_size(nbytes), before);
}

void fill(const CommandLine& command_line, Work& work) {
  Progress progress("filled", !command_line.quiet);
  FillHooks hooks;
  hooks.progress = [&](const FillState& state) {
    progress.show(state.done_nbytes, state.all_nbytes, state.found_nbytes);
    return ended_by == 0;
  };
  hooks.on_end = [&](const FillResult& result) {
    Row& row = work.rows[work.row_of_task[result.task]];
    row.result = result;
    const std::string fault = fault_of(row);
    if (!fault.empty()) {
      progress.clear();
      print_warning(fmt::format("{}: {}", row.path, fault));
    }
  };
  fill_arrays(work.tasks, command_line.threads, FillManners::kIdle, hooks);
}

}  // namespace

int run_fill(const CommandLine& command_line) {
  const std::string why = why_nothing_is_kept(command_line);
  if (!why.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("npyfs fill: nothing is kept with {}", why));
  }
  LoadedDataset loaded(command_line);
  require_sources_outside_cache(command_line, loaded.dataset);
  const KeepOptions keep = keep_options(command_line, loaded, print_warning);
  if (keep.folder->is_read_only()) {
    throw file_error(ErrorKind::kIo, command_line.cache_dir,
                     "the cache folder may not be written to, so nothing can be filled");
  }
  const Tree tree(loaded.dataset, command_line.header_align);
  const Fetcher fetcher(loaded.cache, loaded.verified);
  Work work = plan_work(tree, fetcher, keep);
  tell_what_is_not_kept(work.rows, command_line.quiet);
  {
    const NotedSignals noted;
    fill(command_line, work);
  }
  tell_of_room(command_line, work.rows);
  if (command_line.json) {
    print_all(result_json(work.rows));
  } else if (!command_line.quiet) {
    print_all(result_text(work.rows));
  }
  if (ended_by != 0) {
    print_warning("interrupted; what was kept stays, and the next run goes on there");
    std::raise(ended_by);
  }
  return std::any_of(work.rows.begin(), work.rows.end(), is_lacking) ? 1 : 0;
}

}  // namespace npyfs
