// SPDX-License-Identifier: Apache-2.0

#include "formats/named_files.h"

#include <fmt/format.h>

#include <utility>

#include "formats/bytes/local_storage.h"

namespace npyfs {

NamedFiles::NamedFiles(std::string folder, const OpenContext& context)
    : folder_(std::move(folder)),
      context_(context),
      working_directory_(absolute_path_of(context.base_dir.empty() ? "." : context.base_dir)),
      paths_(open_storage("", context.confined_to(folder_))) {}

std::uint32_t NamedFiles::find(std::string_view path) {
  // Most lines name the file of the line before.
  if (!files_.empty() && files_.back().path == path) {
    return static_cast<std::uint32_t>(files_.size() - 1);
  }
  const auto known = numbers_.find(path);
  if (known != numbers_.end()) {
    return known->second;
  }
  const auto number = static_cast<std::uint32_t>(files_.size());
  const auto added = numbers_.emplace(std::string(path), number).first;
  files_.push_back({added->first, nullptr});
  return number;
}

const SourcePtr& NamedFiles::source(std::uint32_t file) {
  File& named = files_[file];
  if (named.source == nullptr) {
    const std::string path(named.path);
    try {
      named.source = paths_->open(resolve(path), path);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kNotFound || path.starts_with('/')) {
        throw;
      }
      throw Error(
          error.kind(),
          fmt::format("{}; it was looked for below the working directory, {} and "
                      "--base-dir ({})",
                      error.what(), printable(folder_),
                      context_.base_dir.empty() ? "not given" : printable(context_.base_dir)),
          error.to_errno());
    }
  }
  return named.source;
}

std::string NamedFiles::resolve(const std::string& path) const {
  if (path.starts_with('/')) {
    return path;
  }
  for (const std::string& folder : {std::string("."), folder_, context_.base_dir}) {
    std::string candidate = folder.empty() ? std::string() : folder + "/" + path;
    if (!candidate.empty() && paths_->has(candidate)) {
      return candidate;
    }
  }
  require_no_url(path);
  return path;
}

}  // namespace npyfs
