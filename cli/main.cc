// SPDX-License-Identifier: Apache-2.0
//
// npyfs: ML data sets as .npy files.

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/cache.h"
#include "cli/fill.h"
#include "cli/index.h"
#include "cli/info.h"
#include "cli/mount.h"
#include "cli/option_table.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/stats.h"
#include "cli/umount.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/child.h"

namespace npyfs {

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int run(const std::vector<std::string>& arguments) {
  const CommandLine command_line = parse_command_line(arguments);
  switch (command_line.verb) {
    case Verb::kHelp:
      print_all(help_text());
      return 0;
    case Verb::kVersion:
      print_all("npyfs " NPYFS_VERSION "\n");
      return 0;
    case Verb::kMount:
      return run_mount(command_line);
    case Verb::kUmount:
      return run_umount(command_line);
    case Verb::kInfo:
      return run_info(command_line);
    case Verb::kStats:
      return run_stats(command_line);
    case Verb::kIndex:
      return run_index(command_line);
    case Verb::kFill:
      return run_fill(command_line);
    case Verb::kCache:
      return run_cache(command_line);
  }
  return kFailed;
}

void print_error(const std::string& text) {
  std::fprintf(stderr, "npyfs: %s\n", printable(text).c_str());
}

// The exit code; every exception ends here as one line.
int run_guarded(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUsage) {
      print_error(std::string(error.what()) + " (try 'npyfs --help')");
      return kWrongUsage;
    }
    print_error(error.what());
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(std::string("internal error: ") + error.what());
  }
  return kFailed;
}

}  // namespace

}  // namespace npyfs

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == npyfs::kHdf5ChildArgument) {
    return npyfs::run_hdf5_child();
  }
  // Whoever starts this may ignore it; then nobody could tell whether a command has succeeded.
  std::signal(SIGCHLD, SIG_DFL);
  return npyfs::run_guarded(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
