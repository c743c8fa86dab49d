// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/paths.h"

#include <algorithm>
#include <vector>

namespace npyfs {

namespace {

// The parts between slashes; empty ones are left out.
std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) {
      parts.push_back(path.substr(0, slash));
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string folder_of_path(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string_view::npos) {
    return {};
  }
  return std::string(path.substr(0, std::max<std::size_t>(slash, 1)));
}

std::string_view name_of_path(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

bool is_key(std::string_view name) {
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos ||
        part.find('\\') != std::string_view::npos) {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    name.remove_prefix(slash + 1);
  }
}

std::string join_keys(std::string_view prefix, std::string_view key) {
  std::string joined(prefix);
  joined += prefix.empty() || key.empty() || prefix.ends_with('/') ? "" : "/";
  return joined += key;
}

std::string normal_path(std::string_view path) {
  const bool is_absolute = path.starts_with('/');
  std::vector<std::string_view> kept;
  bool ends_in_folder = path.ends_with('/');
  for (const std::string_view part : parts_of(path)) {
    if (part == "..") {
      if (!kept.empty() && kept.back() != "..") {
        kept.pop_back();
      } else if (!is_absolute) {
        kept.push_back(part);
      }
    } else if (part != ".") {
      kept.push_back(part);
    }
  }
  ends_in_folder = ends_in_folder || path.ends_with("/.") || path == "." || path.ends_with("/..");
  if (kept.empty()) {
    return is_absolute ? "/" : path.empty() ? "" : ".";
  }
  std::string normal;
  for (const std::string_view part : kept) {
    normal += normal.empty() && !is_absolute ? "" : "/";
    normal += part;
  }
  return normal + (ends_in_folder && kept.back() != ".." ? "/" : "");
}

bool has_part(std::string_view path, std::string_view part) {
  const std::vector<std::string_view> parts = parts_of(path);
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::string_view url_scheme(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || text.substr(colon).substr(0, 3) != "://" ||
      !is_letter(text.front())) {
    return {};
  }
  const std::string_view scheme = text.substr(0, colon);
  const bool is_legal = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  });
  return is_legal ? scheme : std::string_view();
}

}  // namespace npyfs
