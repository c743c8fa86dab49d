// SPDX-License-Identifier: Apache-2.0
//
// The folder of a data set that is made of many files: what lies in it, and its files as sources.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/confinement.h"
#include "formats/bytes/regular_file.h"

namespace npyfs {

// One thread.
class Folder {
 public:
  // `path` is a directory. `confinement` is asked for what is opened and listed, wherever links in
  // it may lead; `kept_descriptors` counts, for open_one_of_many.
  Folder(std::string path, Confinement confinement, std::shared_ptr<std::size_t> kept_descriptors);
  // One that counts for itself; with `confine` it is confined to itself.
  Folder(std::string path, bool confine);

  struct Entry {
    enum class Kind { kFile, kDirectory, kOther };
    std::string name;
    Kind kind = Kind::kOther;
  };
  const std::string& path() const { return path_; }
  // "<folder>/<below>", for messages.
  std::string path_of(const std::string& below) const;

  // What lies in the directory `below` the folder ("" is the folder itself), sorted bytewise,
  // without hidden names. Links are what they lead to; one that leads nowhere is kOther. Throws
  // kNotFound or kIo, kUnsupported where a link leads to where it must not.
  std::vector<Entry> list(const std::string& below) const;
  // Whether `below` is a directory that one of those it lies in is, too: a link that goes round.
  bool goes_round(const std::string& below) const;

  // Opens the regular file `below`, by open_one_of_many. Throws as FileSource::open.
  SourcePtr open(const std::string& below) const;
  // The same, keeping no descriptor.
  SourcePtr open_on_demand(const std::string& below) const;
  // As RegularFile::open.
  std::optional<RegularFile> open_regular(const std::string& below) const;

  // Where `below` lies, whatever the working directory becomes.
  std::string absolute_path_of(const std::string& below) const;

 private:
  std::string path_;
  std::string absolute_;
  Confinement confinement_;
  std::shared_ptr<std::size_t> kept_descriptors_;
};

// Opens one file of a data set that may have very many: half of the descriptors that the process
// may have are kept, and counted in `kept_descriptors`; further files are opened for each read.
// Throws as FileSource::open.
SourcePtr open_one_of_many(const Confinement& confinement, const std::string& path,
                           const std::string& name, std::size_t& kept_descriptors);

}  // namespace npyfs
