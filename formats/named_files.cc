// SPDX-License-Identifier: Apache-2.0

#include "formats/named_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "formats/bytes/folder.h"

namespace npyfs {

namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  struct stat about;
  return ::stat(path.c_str(), &about) == 0;
}

}  // namespace

NamedFiles::NamedFiles(std::string folder, const OpenContext& context)
    : folder_(std::move(folder)), context_(context), most_descriptors_(descriptor_budget()) {
  working_directory_ =
      fs::absolute(context.base_dir.empty() ? fs::path(".") : fs::path(context.base_dir)).string();
  if (context.confine) {
    std::error_code ignored;
    allowed_ =
        fs::canonical(context.base_dir.empty() ? folder_ : context.base_dir, ignored).string();
  }
}

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
    const std::string resolved = resolve(path);
    require_allowed(path, resolved);
    const bool keep = kept_descriptors_ < most_descriptors_;
    kept_descriptors_ += keep ? 1 : 0;
    named.source = FileSource::open(
        resolved, path, keep ? FileSource::Descriptor::kKept : FileSource::Descriptor::kOnDemand);
  }
  return named.source;
}

std::string NamedFiles::resolve(const std::string& path) const {
  if (path.starts_with('/')) {
    return path;
  }
  for (const std::string& folder : {std::string("."), folder_, context_.base_dir}) {
    std::string candidate = folder.empty() ? std::string() : folder + "/" + path;
    if (!candidate.empty() && exists(candidate)) {
      return candidate;
    }
  }
  return path;
}

void NamedFiles::require_allowed(const std::string& path, const std::string& resolved) const {
  if (!context_.confine) {
    return;
  }
  std::error_code error;
  const std::string real = fs::canonical(resolved, error).string();
  if (!error && (allowed_.empty() || !(real + "/").starts_with(allowed_ + "/"))) {
    throw file_error(ErrorKind::kUnsupported, path,
                     fmt::format("the file lies outside of {}, expected it within as others may "
                                 "read this mount (allow_other); --base-dir names a folder above, "
                                 "--allow-outside allows any",
                                 printable(allowed_)));
  }
}

}  // namespace npyfs
