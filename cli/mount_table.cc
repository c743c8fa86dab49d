// SPDX-License-Identifier: Apache-2.0

#include "cli/mount_table.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

bool is_octal(char c) { return '0' <= c && c <= '7'; }

// The kernel writes blanks, line ends and backslashes as \ooo.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size() && is_octal(text[at + 1]) &&
        is_octal(text[at + 2]) && is_octal(text[at + 3])) {
      out += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                               (text[at + 3] - '0'));
      at += 3;
    } else {
      out += text[at];
    }
  }
  return out;
}

// Null where the path cannot be resolved; errno says why.
std::unique_ptr<char, void (*)(void*)> resolve(const std::string& path) {
  return {::realpath(path.c_str(), nullptr), ::free};
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  // "36 35 98:0 /root /mnt rw,noatime master:1 - fuse.npyfs a.ffr rw": any number of fields stands
  // before the dash (man 5 proc).
  std::vector<MountEntry> table;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    std::size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") {
      ++dash;
    }
    if (dash + 2 < fields.size()) {
      table.push_back({unescape(fields[4]), fields[dash + 1], unescape(fields[dash + 2])});
    }
  }
  return table;
}

std::vector<MountEntry> read_mount_table() {
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_mount_table(text.str());
}

std::optional<MountEntry> find_mount(const std::vector<MountEntry>& table, std::string_view path) {
  for (auto entry = table.rbegin(); entry != table.rend(); ++entry) {
    if (entry->mountpoint == path) {
      return *entry;
    }
  }
  return std::nullopt;
}

std::string absolute_path(const std::string& path) {
  const auto whole = resolve(path);
  if (!whole) {
    throw system_error(path, "find", errno);
  }
  return whole.get();
}

std::string absolute_mountpoint(const std::string& path) {
  std::string_view trimmed = path;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) {
    trimmed.remove_suffix(1);
  }
  const std::size_t slash = trimmed.find_last_of('/');
  const std::string parent(slash == std::string_view::npos ? "."
                           : slash == 0                    ? "/"
                                                           : trimmed.substr(0, slash));
  const std::string_view name = trimmed.substr(slash + 1);  // npos + 1 is 0
  if (name.empty() || name == "." || name == "..") {        // not a name: it must be looked into
    return absolute_path(path);
  }
  const auto above = resolve(parent);
  if (!above) {
    throw system_error(path, "find", errno);
  }
  const std::string folder = above.get();
  return folder + (folder == "/" ? "" : "/") + std::string(name);
}

bool lies_below(std::string_view path, std::string_view folder) {
  if (folder == "/") {
    return path.starts_with('/');
  }
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace npyfs
