// SPDX-License-Identifier: Apache-2.0
//
// The files that one HDF5 file and its links lead to, each opened once, each with a child of its
// own.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/storage.h"
#include "formats/hdf5/child_process.h"
#include "formats/hdf5/patience.h"

namespace npyfs {

// One file; its relative names count from its own folder.
struct LinkedFile {
  std::shared_ptr<Hdf5Process> process;
  StoragePtr folder;

  const SourcePtr& source() const { return process->source(); }
};

// One thread.
class FileSet {
 public:
  // `patience` outlives it.
  explicit FileSet(const Patience& patience);
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  // No process is left running: the mount is going to fork, and may never need it.
  ~FileSet();

  // The file that was named by the user.
  LinkedFile& add(const std::string& path, const SourcePtr& source);
  // A file that `from` names; the same one for the same name. Throws kUnsupported for one that it
  // may not lead to, as Storage::open, and kTooLarge for one too many.
  LinkedFile& find(LinkedFile& from, const std::string& name);
  // A raw file that `from` names.
  static SourcePtr open_raw(LinkedFile& from, const std::string& name);

  // When all of it must be open: the more files there are, and the larger they are, the later.
  Patience::Clock::time_point end() const { return end_; }
  bool is_late() const { return patience_.now() > end_; }
  // Whether there was one too many.
  bool is_full() const { return is_full_; }

 private:
  LinkedFile& add_absolute(const std::string& absolute, const SourcePtr& source);

  const Patience& patience_;
  std::map<std::string, std::unique_ptr<LinkedFile>> files_;  // by absolute path
  Patience::Clock::time_point end_;
  bool is_full_ = false;
};

}  // namespace npyfs
