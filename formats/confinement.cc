// SPDX-License-Identifier: Apache-2.0

#include "formats/confinement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace npyfs {

Confinement::Confinement(const std::string& folder, const OpenContext& context)
    : confined_(context.confine) {
  for (const std::string& path : {folder, context.base_dir}) {
    std::error_code error;
    const std::string real =
        path.empty() ? std::string() : std::filesystem::canonical(path, error).string();
    if (confined_ && !error && !real.empty()) {
      allowed_.push_back(real);
    }
  }
}

SourcePtr Confinement::open(const std::string& path, const std::string& name,
                            FileSource::Descriptor descriptor) const {
  // Once it is open: what is checked before may be another file by then.
  return FileSource::open(path, name, descriptor,
                          [&](const std::string& real) { require_within(real, name); });
}

void Confinement::require_within(const std::string& real_path, const std::string& name) const {
  const auto holds = [&](const std::string& folder) {
    return real_path == folder ||
           real_path.starts_with(folder.ends_with('/') ? folder : folder + "/");
  };
  if (confined_ && std::none_of(allowed_.begin(), allowed_.end(), holds)) {
    throw file_error(ErrorKind::kUnsupported, name,
                     fmt::format("it lies outside of {}, expected it within as others may read "
                                 "this mount (allow_other); --base-dir names a folder above, "
                                 "--allow-outside allows any",
                                 printable(fmt::format("{}", fmt::join(allowed_, " and ")))));
  }
}

}  // namespace npyfs
