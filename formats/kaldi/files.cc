// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace npyfs {

namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  struct stat about;
  return ::stat(path.c_str(), &about) == 0;
}

// Half of what the process may have open; what is beyond is opened for each read.
std::size_t descriptor_budget() {
  rlimit limit{};
  constexpr std::size_t kMost = 100'000;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 100;
  }
  return std::min<std::size_t>(limit.rlim_cur / 2, kMost);
}

}  // namespace

Confinement::Confinement(const std::string& folder, const OpenContext& context)
    : confined_(context.confine) {
  for (const std::string& path : {folder, context.base_dir}) {
    std::error_code error;
    const std::string real = path.empty() ? "" : fs::canonical(path, error).string();
    if (confined_ && !error && !real.empty()) {
      allowed_.push_back(real);
    }
  }
}

SourcePtr Confinement::open(const std::string& path, const std::string& name,
                            FileSource::Descriptor descriptor) const {
  if (!confined_) {
    return FileSource::open(path, name, descriptor);
  }
  return FileSource::open(path, name, descriptor, [&](const std::string& real) {
    const auto holds = [&](const std::string& folder) {
      return real.starts_with(folder.ends_with('/') ? folder : folder + "/");
    };
    if (std::none_of(allowed_.begin(), allowed_.end(), holds)) {
      throw file_error(
          ErrorKind::kUnsupported, name,
          fmt::format("the file lies outside of {}, expected it within as others may "
                      "read this mount (allow_other); --base-dir names a folder above, "
                      "--allow-outside allows any",
                      printable(fmt::format("{}", fmt::join(allowed_, " and ")))));
    }
  });
}

NamedFiles::NamedFiles(std::string folder, const OpenContext& context)
    : folder_(std::move(folder)),
      context_(context),
      confinement_(folder_, context),
      most_descriptors_(descriptor_budget()) {
  working_directory_ =
      fs::absolute(context.base_dir.empty() ? fs::path(".") : fs::path(context.base_dir)).string();
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
    const bool keep = *context_.kept_descriptors < most_descriptors_;
    named.source =
        confinement_.open(resolve(path), path,
                          keep ? FileSource::Descriptor::kKept : FileSource::Descriptor::kOnDemand);
    *context_.kept_descriptors += keep ? 1 : 0;
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

}  // namespace npyfs
