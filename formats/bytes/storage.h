// SPDX-License-Identifier: Apache-2.0
//
// A place with names in it: the files below a folder, the members of an archive, one day the
// objects behind a URL. All that formats open, list or look at goes through here, so that they need
// not know which of these they have.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/checksums.h"
#include "formats/bytes/confinement.h"
#include "formats/bytes/identity.h"

namespace npyfs {

class Storage;
using StoragePtr = std::shared_ptr<const Storage>;

// One value, open for a few reads: it is cheaper to open than a source, and keeps nothing once it
// is gone. One thread.
class StoredValue {
 public:
  virtual ~StoredValue() = default;
  virtual std::uint64_t nbytes() const = 0;
  // Fills `out` from `offset` on. A value that is read whole is verified with the storage's
  // checksum, if it has one. Throws kCorrupt where that is not all there, kChanged where the value
  // is no longer what was expected, kIo.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // What verifies it before a part is read; nothing where there is no checksum, or reading sees to
  // it.
  virtual Guard guard() const { return {}; }
};

// What a value must still be when it is read.
struct Expected {
  // What identify() said, which must outlive the value; null: it was not noted.
  const Identity* identity = nullptr;
  // Used if `identity` is null: the value must not have appeared, gone or changed since this time,
  // which take_time() returned.
  std::int64_t since_ns = INT64_MAX;
};

// Immutable; any thread, but open() one at a time. Keys are "a/b.npy"; "" is the place itself.
// Messages name what they are about by name_of().
class Storage {
 public:
  enum class Kind {
    kNone,      // there is nothing of that name
    kFile,      // it can be opened
    kFolder,    // it can be listed
    kDeadLink,  // a link that leads nowhere
    kOther,     // a device, a socket
  };
  struct Entry {
    std::string name;
    Kind kind = Kind::kOther;
  };

  virtual ~Storage() = default;

  // "<place>/<key>", as the user wrote the place.
  virtual std::string name_of(const std::string& key) const = 0;
  // What `key` is; links are what they lead to. Throws kIo where that cannot be found out.
  virtual Kind kind_of(const std::string& key) const = 0;
  // What stands directly below the folder `prefix`, sorted bytewise, without hidden names. Throws
  // kNotFound, kIo, kUnsupported where it may not be listed.
  virtual std::vector<Entry> list(const std::string& prefix) const = 0;
  // All keys below "<prefix>/", without it, sorted; nothing where it would take a list() for each
  // folder.
  virtual std::optional<std::vector<std::string>> keys_below(const std::string& /*prefix*/) const {
    return std::nullopt;
  }
  // The folder `prefix` as a storage of its own, under the same confinement. Throws kUnsupported if
  // the folder lies outside of the confinement. A storage without confinement does not look whether
  // the folder exists.
  virtual StoragePtr below(const std::string& prefix) const = 0;

  // What the value or folder of `key` is now, without opening it; an Identity that does not exist
  // where there is none. Nothing where that cannot be told, or open() would refuse to go there.
  virtual std::optional<Identity> identify(const std::string& key) const = 0;
  // A moment, for Expected::since_ns: whatever changes after this call counts as changed since
  // then. May wait some milliseconds.
  virtual std::int64_t take_time() const { return INT64_MAX; }

  // A source of the value's bytes. `name` is what messages call it; empty: name_of(key). Throws
  // kNotFound, kIo, kUnsupported for what is no file or may not be opened (a FIFO is never opened:
  // that could wait for ever).
  virtual SourcePtr open(const std::string& key, const std::string& name = {}) const = 0;
  // What `key` is, and its source if it is a file: kind_of() and open() in one, for many files.
  struct Found {
    Kind kind = Kind::kNone;
    SourcePtr source;  // null for what is no file
  };
  virtual Found look_up(const std::string& key) const;
  // Null where there is none. Throws kChanged where it is not what was expected, or has come or
  // gone since; kIo; kUnsupported as open().
  virtual std::unique_ptr<StoredValue> open_value(const std::string& key,
                                                  const Expected& expected = {}) const = 0;

  // The one source that all values lie in, an archive; null where each has a source of its own.
  virtual SourcePtr archive() const { return nullptr; }
  // Where the value of `key` lies in a source that holds others too (an archive); nothing where
  // there is no such value, or where it has a source of its own. Throws kCorrupt where the archive
  // is damaged there, kUnsupported where the value is packed in a way that npyfs does not know.
  struct Place {
    std::uint64_t nbytes = 0;
    bool packed = false;  // it must be decoded: there is no extent
    Extent extent;
    Guard guard;
  };
  virtual std::optional<Place> find_place(const std::string& /*key*/) const { return std::nullopt; }
  // Throws kCorrupt where the directory of an archive has the value under another name than its
  // place.
  virtual void require_own_name(const std::string& /*key*/) const {}

  // open(), but null where there is nothing of that name. A link that leads nowhere was meant to be
  // something: that throws kNotFound.
  SourcePtr find(const std::string& key) const;
  // False, too, where that cannot be found out.
  bool has_file(const std::string& key) const;
  bool has_folder(const std::string& key) const;
  bool has(const std::string& key) const;
  // Whether the folder `key` is one that it lies in: a link that goes round.
  bool goes_round(const std::string& key) const;

 private:
  Kind kind_if_known(const std::string& key) const;
};

// The folder at `location`. Empty: the working directory, where keys are paths as a user writes
// them, absolute ones too. Looks at nothing yet. What links lead to must lie within `confinement`.
StoragePtr open_storage(const std::string& location, const Confinement& confinement = {});

// A file that the user named. Throws as Storage::open, and as require_no_url where there is none.
SourcePtr open_named_file(const std::string& path);

// Throws kUnsupported, naming the scheme and what to do, where `location` is a URL. To be asked
// where users and files name a place, if nothing of that name is there: a folder may be called
// "s3:".
void require_no_url(const std::string& location);

}  // namespace npyfs
