// SPDX-License-Identifier: Apache-2.0
//
// The folder of a data set that is made of many files: what lies in it, and its files as sources.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// One thread.
class Folder {
 public:
  // `path` is a directory. With `confine` nothing outside of it is opened or listed, wherever links
  // in it may lead.
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

  // Throws kUnsupported where `below` is a link, or lies behind one, that leads to where it must
  // not.
  void require_allowed(const std::string& below) const;

  // Opens the regular file `below`. Throws as FileSource::open and list. Of very many files only
  // some keep a descriptor, the others are opened for each read.
  SourcePtr open(const std::string& below);

 private:
  std::string path_;
  std::string allowed_;  // the folder's real path; empty: not confined
  std::size_t descriptors_left_;
};

// How many descriptors a data set of many files may keep: half of what the process may have.
std::size_t descriptor_budget();

}  // namespace npyfs
