// SPDX-License-Identifier: Apache-2.0
//
// The records of one source, in order: what they are called and which fields they have. Everything
// here is immutable once opened and may be asked from any thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/column.h"

namespace npyfs {

enum class KeyKind { kNone, kInteger, kText };

struct Field {
  std::string name;
  // Names the payload where the format has it from a file name ("jpg"); empty: look at the bytes.
  std::string extension;
  // Payload bytes still to be understood, or items of known type; of items that also have a stored
  // form, both: the bytes are shown where the user asks for them, or the items make no array.
  std::shared_ptr<const ByteColumn> bytes;
  std::shared_ptr<const Column> typed;
  // Items are pieces of one time axis (audio, feature matrices): always laid out one after another.
  bool time_series = false;
  // Missing in some records by the nature of the format: not worth a warning.
  bool sparse = false;
  // A further part of the table's main field, named x_<part>: joined together with it.
  bool companion = false;
  // Payloads without an extension may be pickles, if that is what they look like.
  bool maybe_pickled = false;

  // The name may depend on which other fields there are: in tar shards, the first of npy, wav and
  // so on is x. See settle_bids.
  struct Bid {
    std::string name;       // the name it bids for
    int place = 0;          // the lowest bid wins
    std::string otherwise;  // its name if it does not
  };
  std::optional<Bid> bid;
};

// Gives every field with a bid its name. Call it again when fields of several tables are put
// together.
void settle_bids(std::vector<Field>& fields);

// Files below records/: the stored bytes of each record, or of each of its parts.
struct StoredUnit {
  std::string extension;  // empty: by the magic of the bytes, else "bin"
  std::shared_ptr<const ByteColumn> bytes;
};

// The records of one source, in order.
class RecordTable {
 public:
  virtual ~RecordTable() = default;

  virtual std::uint64_t size() const = 0;
  virtual const std::vector<Field>& fields() const = 0;
  virtual const std::vector<StoredUnit>& stored() const = 0;
  // The sources of the records. Arrays take their mtime and their changes from them.
  virtual std::vector<SourcePtr> sources() const = 0;

  virtual KeyKind key_kind() const { return KeyKind::kNone; }
  virtual std::int64_t int_key(std::uint64_t /*record*/) const { return 0; }
  virtual std::string_view text_key(std::uint64_t /*record*/) const { return {}; }

  // Null for a record that is not known to be damaged.
  virtual const Damage* damage(std::uint64_t /*record*/) const { return nullptr; }
  // The first record of each shard, ascending from 0; empty without records. Found by where the
  // stored bytes lie, unless the table knows better.
  virtual std::vector<std::uint64_t> shard_starts() const;

  // The number of records for which damage() answers.
  virtual std::uint64_t damaged_count() const { return 0; }
};

using TablePtr = std::shared_ptr<const RecordTable>;

}  // namespace npyfs
