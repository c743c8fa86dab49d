// SPDX-License-Identifier: Apache-2.0
//
// The files that a script, a list or a data directory names: found, allowed, opened once each.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/storage.h"
#include "formats/opening.h"

namespace npyfs {

// One thread.
class NamedFiles {
 public:
  // Relative paths: the working directory, `folder`, --base-dir, in this order.
  NamedFiles(std::string folder, const OpenContext& context);

  // The number of the file of that name, for source(). Opens nothing.
  std::uint32_t find(std::string_view path);
  // Opens the file where it has not been yet. Throws kNotFound, kIo, kUnsupported.
  const SourcePtr& source(std::uint32_t file);
  // Null where source() has not been asked for it, or has thrown.
  const SourcePtr& opened(std::uint32_t file) const { return files_[file].source; }
  std::size_t size() const { return files_.size(); }

  // The directory that commands run in.
  const std::string& working_directory() const { return working_directory_; }

 private:
  struct File {
    std::string_view path;  // the key in numbers_
    SourcePtr source;
  };
  std::string resolve(const std::string& path) const;

  std::string folder_;
  const OpenContext& context_;
  std::string working_directory_;
  StoragePtr paths_;  // as they are written
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<File> files_;
};

}  // namespace npyfs
