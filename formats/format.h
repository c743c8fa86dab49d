// SPDX-License-Identifier: Apache-2.0
//
// All that a format may promise: where its records lie, what they are called, what is known about
// their items. Everything here is immutable once opened and may be asked from any thread; nothing
// here knows of mounts or threads, and of caches no more than chunk_source.h says.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/checksums.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/confinement.h"
#include "formats/bytes/dtype.h"
#include "formats/bytes/error.h"
#include "formats/bytes/plan.h"
#include "formats/bytes/storage.h"
#include "formats/bytes/verifier.h"

namespace npyfs {

struct UnpackPool;  // formats/bytes/unpack.h

// Why a record cannot be read, found while opening: its bytes answer EIO, the others are unharmed.
struct Damage {
  Error error;
  // What the format says of its stored size, where that can be known.
  std::optional<std::uint64_t> nbytes;
  // How long its item is along axis 0, where that can be known.
  std::optional<std::uint64_t> rows = std::nullopt;
};

struct Store;  // formats/store.h

// The stored bytes of one field of every record.
class ByteColumn {
 public:
  virtual ~ByteColumn() = default;
  virtual std::uint64_t size() const = 0;

  // Replaces `out` by the record's extents, in order; false where the record lacks the field.
  // Extents lie within their sources. Not to be asked for a damaged record.
  virtual bool locate(std::uint64_t record, std::vector<Extent>& out) const = 0;
  // Null for a record that is not known to be damaged.
  virtual const Damage* damage(std::uint64_t /*record*/) const { return nullptr; }
  // What must be verified before the record's bytes are answered.
  virtual Guard guard(std::uint64_t /*record*/) const { return {}; }
  // How many records from this one on (at least 1) are undamaged, of one size, and lie back to back
  // in one source, under guards that continue each other. An array of equal records is then one
  // extent.
  virtual std::uint64_t run(std::uint64_t /*record*/) const { return 1; }
  // The size of every record in bytes, where the index knows without looking that all are present,
  // undamaged and of one size.
  virtual std::optional<std::uint64_t> equal_nbytes() const { return std::nullopt; }
};

// One record's field as an array item.
struct Item {
  bool present = true;
  const Damage* damage = nullptr;  // then dtype and shape are unknown
  DType dtype;
  Shape shape;
};

// A field whose items' types the format (or a payload decoder) knows.
class Column {
 public:
  virtual ~Column() = default;
  virtual std::uint64_t size() const = 0;

  // Describes the record's item; may read its header, never its data. Throws kCorrupt where the
  // header is damaged.
  virtual void inspect(std::uint64_t record, Item& item) const = 0;
  // The description of every item, where it is known without looking that all are alike.
  virtual std::optional<Item> uniform() const { return std::nullopt; }

  // Whether the item's bytes must be decoded. If not, plan() says where they lie.
  virtual bool decoded(std::uint64_t /*record*/) const { return false; }
  // Plans `range` of the item's bytes (C order), and on into the items that follow as far as run()
  // reaches; or, once the plan is full, the beginning of it. Only where decoded() is false and the
  // item is present and undamaged.
  virtual void plan(std::uint64_t record, ByteRange range, Plan& plan) const = 0;
  // Fills `out` with the item's bytes (C order). Calls context.require_intact itself.
  virtual void decode(std::uint64_t record, std::span<std::byte> out, DecodeContext& context) const;
  // How many items from this one on (at least 1) plan() can take as one, back to back.
  virtual std::uint64_t run(std::uint64_t /*record*/) const { return 1; }

  // The same items as another type, where the format knows how to make them so: float32 of
  // float64 and the other way, text of more room. Null where it does not.
  virtual std::shared_ptr<const Column> converted(const DType& /*dtype*/) const { return nullptr; }
  // How many items from this one on (at least 1) lie in one shard: a file, or a row of the chunks
  // of a store.
  virtual std::uint64_t shard_run(std::uint64_t record) const { return size() - record; }
  // Items are pieces of one time axis, as in Field::time_series.
  virtual bool time_series() const { return false; }
  // Of text: the code points of the item, where they are known apart from the array's width; of an
  // item that has at most `known`, any number up to that. May read the item, unless its size
  // already says so.
  virtual std::optional<std::uint64_t> text_length(std::uint64_t /*record*/,
                                                   std::uint64_t /*known*/) const {
    return std::nullopt;
  }
  // Frames per second of audio, where all items that are undamaged agree.
  virtual std::optional<std::uint32_t> rate_hz() const { return std::nullopt; }
  // The first two records of audio that do not agree, for a message; empty where all do.
  virtual std::string rate_clash() const { return {}; }
};

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

  // Where the name depends on which other fields there are (of tar shards the first of npy, wav and
  // so on is x): see settle_bids.
  struct Bid {
    std::string name;       // that it bids for
    int place = 0;          // the least of those who bid gets it
    std::string otherwise;  // its name if it does not
  };
  std::optional<Bid> bid;
};

// Gives every field with a bid its name. To be repeated where fields of several tables meet.
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
  // What the records come from: their newest mtime and their changes are the arrays'.
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

// What the user gave to options that formats read, by the names of these without dashes. A flag has
// no values, any other one or, of a file that lists them, several.
using FormatOptions = std::map<std::string, std::vector<std::string>, std::less<>>;

// What the user said, as far as opening a source depends on it, and what a format may use.
struct OpenContext {
  bool permissive = false;
  // Says whether what is looked at while opening is intact. Lives as long as what is opened.
  const Verifier* verifier = &strict_verifier();
  std::map<std::string, std::string> decode;  // --decode NAME=KIND
  // One line to the user; `text` has its place in it.
  std::function<void(const std::string& text)> warn;
  ChunkCache* cache = nullptr;
  // What the compressed shards of the data set share; null: nothing.
  std::shared_ptr<UnpackPool> unpack_pool;
  // Where relative paths that a data file names are looked for last; empty: --base-dir was not
  // given.
  std::string base_dir;
  // Files that a data file names must lie within the data set's folder.
  bool confine = false;
  FormatOptions options;
  // How many descriptors are kept by files that nobody named; one number for the process, as copies
  // share it.
  std::shared_ptr<std::size_t> kept_descriptors = std::make_shared<std::size_t>(0);

  // Whether the user gave the option.
  bool has(std::string_view option) const { return options.find(option) != options.end(); }
  // The kind given for `name`, or an empty string.
  std::string decode_kind(const std::string& name) const;
  // Where what lies in `folder`, or what a data file in it names, may lead: below it or --base-dir
  // where `confine` says so.
  Confinement confined_to(const std::string& folder) const;
  // The folder at `path`, confined to itself where `confine` says so.
  StoragePtr storage(const std::string& path) const;
  // What belongs to a data file and lies at `path` beside it; null where there is none. Throws as
  // Storage::find.
  SourcePtr open_beside(const std::string& path) const;
};

// What a LOCATION turned out to be.
struct Location {
  std::string path;  // as the user wrote it, after expansion
  bool is_directory = false;
  SourcePtr source;  // null for a directory
  // The user names the format: it may recognise what it would not claim by itself.
  bool named = false;
  // The split that it is opened for; empty: none was named.
  std::string split{};
};

// An option that a format takes. The command line and --help have one for each name.
struct FormatOption {
  const char* name;   // without dashes: OpenContext::options has it under this name
  const char* value;  // as --help calls it; null for a flag
  const char* help;
};

// What a SOURCE says for itself alone.
struct SourceOptions {
  bool permissive = false;
  FormatOptions options;
};

// What a file says of each key, as --map takes it.
using KeyMap = std::map<std::string, std::string, std::less<>>;

// What the attributes of a data set say of the rows of its arrays: it has to stay true where rows
// are cut or put one after another.
struct RowAttributes {
  // Stores may stand one after another only if `attribute` of their roots is the same in both.
  struct Common {
    const char* array;
    const char* attribute;
  };
  std::span<const Common> common;
  // Three lists with an entry for each recording that the rows of a split's x come from: its name,
  // its first row, and the row behind its last. The name of the split follows each of these.
  const char* recording_names;
  const char* recording_starts;
  const char* recording_ends;
};

// A row of the table in registry.cc. A format gives what it has by name and leaves out the rest.
struct Format {
  const char* name = nullptr;
  // Of file names, without the dot; asked after the magic of every format said no.
  std::vector<std::string> extensions{};
  // Opens files of every packing (formats/bytes/packings); other formats open gzip at most.
  bool takes_packings = false;
  // Whether the content is this format's. Looks at few bytes; never throws for content.
  bool (*recognises)(const Location& location) = nullptr;
  // Checks everything that can be checked cheaply. Null for formats that hold arrays.
  std::shared_ptr<const RecordTable> (*open)(const Location& location,
                                             OpenContext& context) = nullptr;
  // The same as `open` for formats that hold arrays (formats/store.h); null for all others.
  std::shared_ptr<const Store> (*open_store)(const Location& location,
                                             OpenContext& context) = nullptr;
  // Where sets that are directories lie within a project's folder; null: nowhere in particular.
  const char* sets_folder = nullptr;
  std::span<const FormatOption> options{};
  // Whether `words`, before the ':' of a SOURCE, are another way to write the format's name, with
  // options in it; then they are added to `said`. Null: its name only.
  bool (*takes_specifier)(std::string_view words, SourceOptions& said) = nullptr;
  // What --decode x=KIND may call the format's records, besides payloads. `open` sees to it.
  std::vector<std::string> decode_kinds{};
  // Reads a file that --map names. Nothing where every key stands for itself. Throws kCorrupt,
  // naming the line. Null for formats without such files.
  std::optional<KeyMap> (*read_key_map)(const ByteSource& file) = nullptr;
  // What the attributes mean that the format's programs give to stores of any format.
  const RowAttributes* row_attributes = nullptr;
};

}  // namespace npyfs
