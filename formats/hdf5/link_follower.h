// SPDX-License-Identifier: Apache-2.0
//
// Asks the children of an HDF5 file, and of those that it links to, what they hold: links are
// followed from file to file, though not in circles and not for ever.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/hdf5/description.h"
#include "formats/hdf5/file_set.h"

namespace npyfs {

// One thread.
class LinkFollower {
 public:
  using Warn = std::function<void(const std::string&)>;

  // `files` outlives it. What `used` leaves of the budget may be told. `warn` gets what the
  // children warn of.
  LinkFollower(FileSet& files, const DescriptionBudget& used, Warn warn)
      : files_(files), budget_(used), warn_(std::move(warn)) {}

  // All that a file holds. Throws kCorrupt where it cannot be opened, kTooLarge, kIo.
  GroupDescription describe_root(const LinkedFile& file);

  // An object, and where it is.
  struct Found {
    LinkedFile* file;
    std::string path;
    GroupDescription described;
  };
  // The object `path` of `file`, which may itself be a link to another file. Nothing is described
  // where there is none. Throws kUnsupported for a loop, and as describe_root.
  Found find_object(LinkedFile& file, const std::string& path);

  // What is being opened, from the file that was named on: links that go round come back to it.
  struct Visit {
    const LinkedFile* file;
    std::string path;
    // What is linked to may be an array that is made of others.
    enum Kind { kLink, kVirtual } kind;
    bool operator==(const Visit&) const = default;
  };
  // While one is opened. Throws kUnsupported for what is being opened already.
  class VisitScope {
   public:
    VisitScope(LinkFollower& links, Visit visit);
    ~VisitScope() { visits_.pop_back(); }
    VisitScope(const VisitScope&) = delete;
    VisitScope& operator=(const VisitScope&) = delete;

   private:
    std::vector<Visit>& visits_;
  };

  // For a handler: throws `error` again unless what it is about can be left out. What changed while
  // it was read, or could not be read just now, cannot; nor can what takes too much: the next link
  // would, too.
  void require_lenient(const Error& error) const;

 private:
  GroupDescription describe(const LinkedFile& file, const std::string& path);

  FileSet& files_;
  DescriptionBudget budget_;
  Warn warn_;
  std::vector<Visit> visits_;
  std::size_t described_ = 0;
  bool is_exhausted_ = false;
};

}  // namespace npyfs
