// SPDX-License-Identifier: Apache-2.0
//
// A path of the mount leads to a File, whatever its bytes are made of, or to a Directory.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/plan.h"

namespace npyfs {

using Ino = std::uint64_t;
using Xattrs = std::vector<std::pair<std::string, std::string>>;  // names and values

// Immutable once made; any thread. Shared, so that what is done ahead of a reader may outlive the
// view that the file is of; but files of records, which are made when they are asked for.
class File : public std::enable_shared_from_this<File> {
 public:
  virtual ~File() = default;

  virtual std::uint64_t nbytes() const = 0;

  // Appends the pieces of `range`, clipped at the end of the file; or, once the plan is full, of
  // the beginning of that. No I/O.
  virtual void plan_read(ByteRange range, Plan& plan) const = 0;

  // The sources that feed it: once one of them has changed, nothing of the file is answered, and
  // the newest one's mtime is the file's. Lives as long as what the file was made of.
  virtual const std::vector<SourcePtr>& sources() const;

  // Called when it is opened, in the given second of any clock: asks sources whether they have
  // changed, as far as that is cheap; throws kChanged. Without this, reads alone find it.
  virtual void check_unchanged(std::int64_t /*second*/) const {}
  // The same of what sources are put together from, for a file whose reads need not ask them.
  virtual void check_parts(std::int64_t /*second*/) const {}

  // Throws kChanged if one of sources() is known to have changed; asks nobody. For every read, so
  // that a file of many sources remembers the answer.
  virtual void require_unchanged() const;

  // The content of a file that differs at every opening; the kernel keeps neither its size nor its
  // bytes. Nothing for every other file.
  virtual std::optional<std::string> text_now() const { return std::nullopt; }

  // A new descriptor (O_CLOEXEC, the caller's) of the local file that has exactly these bytes,
  // whole and never to be changed by npyfs, for the kernel to read in our place. Nothing: it has
  // none. Throws as ByteSource::open_again().
  virtual std::optional<int> open_backing() const { return std::nullopt; }

  virtual Xattrs xattrs() const { return {}; }

  // The serial of the chunk source that only this file uses, if it has one. Once the file is gone,
  // cached chunks of it are useless.
  virtual std::optional<std::uint64_t> own_chunks() const { return std::nullopt; }

 protected:
  File() = default;
  File(const File&) = default;
  File& operator=(const File&) = default;
};

// Immutable once made; any thread.
class Directory {
 public:
  virtual ~Directory() = default;

  virtual std::optional<Ino> find(std::string_view name) const = 0;

  // Calls `visit` for the listed entries in order, each of which has a place of its own, from the
  // place `first` on, until it returns false. Names may have to be read.
  using Visit = std::function<bool(std::uint64_t place, const std::string& name, Ino ino)>;
  virtual void list(std::uint64_t first, const Visit& visit) const = 0;

  // How many of the listed entries are directories.
  virtual std::uint64_t count_directories() const = 0;

 protected:
  Directory() = default;
  Directory(const Directory&) = default;
  Directory& operator=(const Directory&) = default;
};

}  // namespace npyfs
