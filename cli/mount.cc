// SPDX-License-Identifier: Apache-2.0

#include "cli/mount.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/load.h"
#include "cli/mount_table.h"
#include "formats/bytes/error.h"
#include "formats/registry.h"
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

std::string real_path(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  std::string real = resolved != nullptr ? resolved : "";
  std::free(resolved);
  return real;
}

// A source that lies in the folder; null where none does.
SourcePtr find_source_below(const Dataset& dataset, const std::string& folder) {
  SourcePtr found;
  for_each_array(dataset, [&](const std::string& /*path*/, const NamedArray& array) {
    for (const SourcePtr& source : array.sources) {
      if (found == nullptr && lies_below(real_path(source->path()), folder)) {
        found = source;
      }
    }
  });
  return found;
}

// Kept arrays among the sources would be taken for data, and below the mount nobody would find
// them.
void require_cache_apart(const CommandLine& command_line, const Dataset& dataset,
                         const std::string& mountpoint) {
  const std::string folder =
      command_line.cache_dir.empty() ? "" : real_path(command_line.cache_dir);
  if (folder.empty()) {
    return;  // there is none yet
  }
  if (lies_below(folder, mountpoint)) {
    throw file_error(ErrorKind::kUsage, command_line.cache_dir,
                     "the mount would hide the cache folder; take another --cache-dir");
  }
  if (const SourcePtr source = find_source_below(dataset, folder)) {
    throw file_error(ErrorKind::kUsage, command_line.cache_dir,
                     fmt::format("the source {} lies in the cache folder; take another --cache-dir",
                                 printable(source->name())));
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

// What arrays depend on besides the files that were opened.
std::string shaping_text(const CommandLine& command_line) {
  const auto lines_of = [](const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
      text += fmt::format("{}:{}", line.size(), line);
    }
    return text;
  };
  std::string text = lines_of(command_line.sources) + "\n" + lines_of(command_line.shaping);
  // With --permissive it decides which records there are.
  text += command_line.dataset.verify == Verify::kMount ? "\nverify=mount" : "";
  // What stands in files that options name.
  for (const auto& [name, values] : command_line.format_options) {
    text += fmt::format("\n{}:{}{}", name.size(), name, lines_of(values));
  }
  for (const auto& [split, keys] : command_line.dataset.split_rule.lists) {
    text += fmt::format("\n{}:{}{}", split.size(), split, lines_of(keys));
  }
  return text;
}

// The option with which nobody can tell whether arrays are still the same; null: there is none.
const char* volatile_option(const CommandLine& command_line) {
  for (const Format& format : formats()) {
    for (const FormatOption& option : format.options) {
      if (option.makes_volatile && command_line.format_options.count(option.name) != 0) {
        return option.name;
      }
    }
  }
  return nullptr;
}

// `opened`: the files that were opened to find out what there is.
std::optional<KeepOptions> keep_options(const CommandLine& command_line,
                                        const std::vector<OpenedFiles::File>& opened) {
  // What was not verified may not be kept: others would take it for verified.
  if (command_line.cache_dir.empty() || command_line.dataset.verify == Verify::kNever) {
    return std::nullopt;
  }
  if (const char* option = volatile_option(command_line)) {
    print_warning(
        fmt::format("--cache-dir keeps no arrays with --{}, as nobody can tell whether "
                    "they are still the same",
                    option));
    return std::nullopt;
  }
  KeepOptions keep;
  keep.folder = open_cache_folder(command_line.cache_dir, command_line.cache_dir_nbytes);
  keep.version = NPYFS_VERSION;
  std::string depends_on = shaping_text(command_line);
  for (const OpenedFiles::File& file : opened) {
    depends_on += fmt::format("\n{} {:x}", file.identity.text(), file.path_hash);
  }
  keep.dataset = sha256(depends_on);
  return keep;
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

  LoadedDataset loaded(command_line);
  require_sources_outside(loaded.dataset, options.mountpoint);
  require_cache_apart(command_line, loaded.dataset, options.mountpoint);
  // A million of them are no longer needed once the mount serves.
  options.keep = keep_options(command_line, std::exchange(loaded.opened, {}));
  return serve_dataset(loaded.dataset, loaded.cache, loaded.verified, options);
}

}  // namespace npyfs
