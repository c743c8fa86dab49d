// SPDX-License-Identifier: Apache-2.0
//
// What is mounted where, from /proc/self/mountinfo.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

struct MountEntry {
  std::string mountpoint;
  std::string type;    // "fuse.npyfs"
  std::string device;  // what the mount says its source is
};

// Lines of mountinfo that cannot be understood are left out.
std::vector<MountEntry> parse_mount_table(std::string_view text);

std::vector<MountEntry> read_mount_table();

// The uppermost mount at exactly `path` (absolute, without links).
std::optional<MountEntry> find_mount(const std::vector<MountEntry>& table, std::string_view path);

// `path` absolute and without links. Throws as realpath(3) fails.
std::string absolute_path(const std::string& path);

// The same, but the last part is left as it is and not looked into: that may be a mount whose
// server is dead or hangs. Throws kNotFound where a folder above it does not exist.
std::string absolute_mountpoint(const std::string& path);

// Whether `path` is `folder` or lies below it.
bool lies_below(std::string_view path, std::string_view folder);

}  // namespace npyfs
