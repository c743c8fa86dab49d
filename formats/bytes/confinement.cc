// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/confinement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "formats/bytes/error.h"

namespace npyfs {

Confinement::Confinement(const std::vector<std::string>& folders) : confined_(true) {
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::string real = std::filesystem::canonical(folder, error).string();
    if (!error) {
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
