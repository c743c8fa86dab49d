// SPDX-License-Identifier: Apache-2.0

#include "cli/mount.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/keep.h"
#include "cli/load.h"
#include "cli/mount_table.h"
#include "formats/bytes/error.h"
#include "fs/log.h"
#include "fs/session.h"

namespace npyfs {

namespace {

// The mountpoint's absolute path, looked at before any source is: a data set may take minutes to
// open.
std::string check_mountpoint(const std::string& path) {
  struct stat about;
  const int fault = ::stat(path.c_str(), &about) == 0 ? 0 : errno;
  const std::string shown = printable(path);
  if (fault == ENOENT) {
    throw file_error(ErrorKind::kNotFound, path,
                     fmt::format("the mountpoint does not exist, expected a directory; make it: "
                                 "mkdir -p '{}'",
                                 shown));
  }
  if (fault == ENOTCONN) {
    throw file_error(ErrorKind::kIo, path,
                     fmt::format("the mountpoint is a mount whose server is gone; npyfs umount "
                                 "'{}' first",
                                 shown));
  }
  if (fault != 0) {
    throw system_error(path, "look at the mountpoint", fault);
  }
  if (!S_ISDIR(about.st_mode)) {
    throw file_error(ErrorKind::kIo, path,
                     "the mountpoint is not a directory; name SOURCEs first, the mountpoint last");
  }
  std::string absolute = absolute_path(path);
  const std::optional<MountEntry> mounted = find_mount(read_mount_table(), absolute);
  if (mounted && (mounted->type.starts_with("fuse.") || mounted->type == "fuse")) {
    throw file_error(
        ErrorKind::kIo, path,
        fmt::format("the mountpoint is busy, '{}' ({}) is mounted there; {} first",
                    printable(mounted->device), mounted->type,
                    mounted->type == "fuse.npyfs" ? fmt::format("npyfs umount '{}'", shown)
                                                  : "unmount it"));
  }
  return absolute;
}

// Nobody would find it below the mount.
void require_cache_outside(const CommandLine& command_line, const std::string& mountpoint) {
  const std::string folder =
      command_line.cache_dir.empty() ? "" : real_path(command_line.cache_dir);
  if (!folder.empty() && lies_below(folder, mountpoint)) {
    throw file_error(ErrorKind::kUsage, command_line.cache_dir,
                     "the mount would hide the cache folder; take another --cache-dir");
  }
}

// A mount over its own sources would ask itself whether they have changed, and wait for ever.
void require_sources_outside(const Dataset& dataset, const std::string& mountpoint) {
  if (const SourcePtr source = find_source_below(dataset, mountpoint)) {
    throw file_error(ErrorKind::kIo, mountpoint,
                     fmt::format("the mountpoint would hide the source {}; mount elsewhere",
                                 printable(source->name())));
  }
}

// What /proc/mounts and df show.
std::string device_name(const CommandLine& command_line) {
  if (!command_line.device.empty()) {
    return command_line.device;
  }
  constexpr std::size_t kLongest = 200;
  std::string name;
  for (const std::string& source : command_line.sources) {
    name += (name.empty() ? "" : " ") + source;
  }
  if (name.size() > kLongest) {
    name = name.substr(0, kLongest) + "...";
  }
  return name;
}

// What readers are given is not kept where that would be wrong.
std::optional<KeepOptions> keep(const CommandLine& command_line, LoadedDataset& loaded) {
  if (command_line.cache_dir.empty()) {
    return std::nullopt;
  }
  require_sources_outside_cache(command_line, loaded.dataset);
  const std::string why = why_nothing_is_kept(command_line);
  if (why.empty()) {
    return keep_options(command_line, loaded, log_warning);
  }
  if (command_line.fill || command_line.dataset.verify != Verify::kNever) {
    print_warning(fmt::format("--cache-dir: nothing is kept with {}", why));
  }
  return std::nullopt;
}

}  // namespace

int run_mount(const CommandLine& command_line) {
  MountOptions options;
  options.version = NPYFS_VERSION;
  options.mountpoint = check_mountpoint(command_line.mountpoints.front());
  options.source = device_name(command_line);
  options.foreground = command_line.foreground;
  options.debug = command_line.debug;
  options.fuse_options = command_line.fuse_options;
  options.threads = command_line.threads;
  options.header_align = command_line.header_align;
  options.passthrough = command_line.passthrough;

  const auto begin = std::chrono::steady_clock::now();
  LoadedDataset loaded(command_line);
  options.opening_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  require_sources_outside(loaded.dataset, options.mountpoint);
  require_cache_outside(command_line, options.mountpoint);
  options.keep = keep(command_line, loaded);
  if (!index_folder(command_line).empty() || !command_line.index_file.empty()) {
    options.index = IndexFigures{loaded.index.hits, loaded.index.misses};
  }
  options.fill = command_line.fill;
  return serve_dataset(loaded.dataset, loaded.cache, loaded.verified, options);
}

}  // namespace npyfs
