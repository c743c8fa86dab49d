// SPDX-License-Identifier: Apache-2.0

#include "cli/umount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

#include "cli/mount_table.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

namespace stdfs = std::filesystem;

bool links_below(const stdfs::path& link, const std::string& folder) {
  std::error_code fault;
  const stdfs::path target = stdfs::read_symlink(link, fault);
  return !fault && lies_below(target.native(), folder);
}

bool has_open_file_below(const stdfs::path& process, const std::string& folder) {
  std::error_code fault;
  stdfs::directory_iterator descriptor(process / "fd", fault);
  for (; !fault && descriptor != stdfs::directory_iterator(); descriptor.increment(fault)) {
    if (links_below(descriptor->path(), folder)) {
      return true;
    }
  }
  return false;
}

bool maps_file_below(const stdfs::path& process, const std::string& folder) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && lies_below(std::string_view(line).substr(path), folder)) {
      return true;
    }
  }
  return false;
}

// fusermount3's exit code and what it said. Throws where it cannot be run.
std::pair<int, std::string> run_fusermount(const std::string& mountpoint) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw system_error(mountpoint, "unmount", errno);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::string words[] = {"fusermount3", "-u", "--", mountpoint};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                             nullptr};
  pid_t child = 0;
  const int fault = ::posix_spawnp(&child, "fusermount3", &actions, nullptr, arguments, ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (fault != 0) {
    ::close(ends[0]);
    throw file_error(ErrorKind::kIo, mountpoint,
                     "cannot unmount: fusermount3 is not installed (package fuse3)");
  }
  std::string said;
  char buffer[512];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1, said};
}

[[noreturn]] void refuse_busy(const std::string& shown, const std::string& mountpoint) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> users = processes_using(mountpoint);
  const std::size_t others = users.size() - std::min(users.size(), kNamed);
  users.resize(users.size() - others);
  const std::string by = users.empty()
                             ? "by a process that cannot be seen from here, or a mount below it"
                             : fmt::format("by {}{}", fmt::join(users, ", "),
                                           others == 0 ? "" : fmt::format(" and {} more", others));
  throw file_error(
      ErrorKind::kIo, shown,
      fmt::format("cannot unmount: busy, in use {}; close its files and leave its folders "
                  "first",
                  by));
}

// The absolute path of the npyfs mount that is called `shown`. Throws where it is none.
std::string find_npyfs(const std::string& shown) {
  const std::vector<MountEntry> table = read_mount_table();
  std::string mountpoint = absolute_mountpoint(shown);
  std::optional<MountEntry> entry = find_mount(table, mountpoint);
  if (!entry) {  // perhaps a link to it
    mountpoint = absolute_path(shown);
    entry = find_mount(table, mountpoint);
  }
  if (!entry) {
    throw file_error(ErrorKind::kNotFound, shown, "is not a mountpoint, nothing is mounted there");
  }
  if (entry->type != "fuse.npyfs") {
    throw file_error(
        ErrorKind::kNotFound, shown,
        fmt::format("is not an npyfs mount but {}; use umount(8) for it", printable(entry->type)));
  }
  return mountpoint;
}

void unmount(const std::string& shown) {
  const std::string mountpoint = find_npyfs(shown);
  if (::geteuid() == 0) {
    if (::umount2(mountpoint.c_str(), UMOUNT_NOFOLLOW) == 0) {
      return;
    }
    if (errno == EBUSY) {
      refuse_busy(shown, mountpoint);
    }
    if (errno != EPERM) {  // root without CAP_SYS_ADMIN, as in a container, goes on as a user does
      throw system_error(shown, "unmount", errno);
    }
  }
  const auto [code, said] = run_fusermount(mountpoint);
  if (code != 0) {
    if (said.find("busy") != std::string::npos) {
      refuse_busy(shown, mountpoint);
    }
    throw file_error(ErrorKind::kIo, shown,
                     fmt::format("cannot unmount: {}",
                                 printable(said.substr(0, said.find_last_not_of('\n') + 1))));
  }
}

}  // namespace

std::vector<std::string> processes_using(const std::string& folder) {
  std::vector<std::string> users;
  std::error_code fault;
  stdfs::directory_iterator process("/proc", fault);
  for (; !fault && process != stdfs::directory_iterator(); process.increment(fault)) {
    const std::string pid = process->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos ||
        pid == std::to_string(::getpid())) {
      continue;
    }
    const stdfs::path& about = process->path();
    if (links_below(about / "cwd", folder) || links_below(about / "root", folder) ||
        has_open_file_below(about, folder) || maps_file_below(about, folder)) {
      std::string name;
      std::ifstream comm(about / "comm");
      std::getline(comm, name);
      users.push_back(fmt::format("{} ({})", pid, printable(name)));
    }
  }
  return users;
}

int run_umount(const CommandLine& command_line) {
  for (const std::string& mountpoint : command_line.mountpoints) {
    unmount(mountpoint);
  }
  return 0;
}

}  // namespace npyfs
