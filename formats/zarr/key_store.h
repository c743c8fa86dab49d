// SPDX-License-Identifier: Apache-2.0
//
// Where a zarr store keeps its values: files below a directory, or members of a zip archive.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/regular_file.h"
#include "formats/format.h"

namespace npyfs {

// Whether a store can have a value of this name: no part of it leads elsewhere.
bool is_key(std::string_view name);

// Whether `name`, the last part of a key, is that of metadata which says what stands at a prefix.
bool names_node(std::string_view name);

// "<prefix>/<key>", or the key where the prefix is empty.
std::string join_keys(const std::string& prefix, const std::string& key);

// One value, open to be read. One thread.
class StoredValue {
 public:
  virtual ~StoredValue() = default;
  virtual std::uint64_t nbytes() const = 0;
  // Fills `out` from `offset` on. What is read whole is verified by what the store has to do that.
  // Throws kCorrupt where that is not all there, kChanged where the
  // value is no longer what it was when the store was opened, kIo.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // What verifies it before a part is read; nothing where there is no checksum, or reading sees to
  // it.
  virtual Guard guard() const { return {}; }
};

// Immutable; any thread. Keys are "a/b/.zarray"; nothing in a key leads out of the store.
class KeyStore {
 public:
  virtual ~KeyStore() = default;

  // "<store>/<key>", for messages.
  virtual std::string name_of(const std::string& key) const = 0;
  // Null where there is none. Throws kChanged where it has come, gone or changed: since identify()
  // said `noted`, which must outlive the value; where that is null, since the store was opened, as
  // far as can be told. Throws kUnsupported for what is no file.
  virtual std::unique_ptr<StoredValue> open(const std::string& key,
                                            const FileIdentity* noted = nullptr) const = 0;
  // What the value of `key` is now, where values have files of their own and this one can be looked
  // at.
  virtual std::optional<FileIdentity> identify(const std::string& /*key*/) const {
    return std::nullopt;
  }
  // What the metadata `key` is read from, null where there is none: its mtime and its changes are
  // those of what it describes.
  virtual SourcePtr open_source(const std::string& key) const = 0;
  // The names that stand next behind "<prefix>/" in keys with more behind them, sorted: groups and
  // arrays, if they have metadata. "" is the root.
  virtual std::vector<std::string> children(const std::string& prefix) const = 0;

  // Whether there are keys below "<prefix>/".
  virtual bool is_folder(const std::string& prefix) const = 0;

  // How the value of `key` lies in an archive; nothing where there is none, or where it is a file
  // of its own. Throws kCorrupt where the archive is damaged there, kUnsupported where it is packed
  // in a way that npyfs does not know.
  struct Member {
    std::uint64_t nbytes = 0;
    bool deflated = false;
    // Of its bytes as they are, with what verifies them; where it is not deflated.
    Extent extent;
    Guard guard;
  };
  virtual std::optional<Member> find_member(const std::string& /*key*/) const {
    return std::nullopt;
  }
  // Throws kCorrupt where the value of `key` has another name in an archive's directory than where
  // it lies, or is not to be found there.
  virtual void require_own_name(const std::string& /*key*/) const {}
  // All keys below "<prefix>/" without it; nothing where it would take listing directories.
  virtual std::optional<std::vector<std::string>> keys_below(const std::string& /*prefix*/) const {
    return std::nullopt;
  }
};

std::shared_ptr<const KeyStore> open_directory_store(const std::string& path, bool confine);

// `archive` is a zip file. Keys begin behind the folder that all members may lie in. What is
// deflated and not asked for as a whole is decoded once, into the cache of `context`.
std::shared_ptr<const KeyStore> open_zip_store(SourcePtr archive, OpenContext& context);

}  // namespace npyfs
