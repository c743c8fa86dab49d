// SPDX-License-Identifier: Apache-2.0
//
// The fields of records, one by one: stored bytes, or items of known type. Everything here is
// immutable once opened and may be asked from any thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/checksums.h"
#include "formats/bytes/chunk_source.h"
#include "formats/bytes/dtype.h"
#include "formats/bytes/error.h"
#include "formats/bytes/plan.h"

namespace npyfs {

// Why a record cannot be read, found while opening: its bytes answer EIO, the others are unharmed.
struct Damage {
  Error error;
  // What the format says of its stored size, where that can be known.
  std::optional<std::uint64_t> nbytes;
  // How long its item is along axis 0, where that can be known.
  std::optional<std::uint64_t> rows = std::nullopt;

  void write(PageWriter& page) const;
  // Throws kCorrupt where the page holds none.
  static Damage read(PageReader& page);
};

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
  // Text only: the number of code points of the item, if it is known apart from the array's width.
  // For an item that has at most `known`, any number up to `known` is an answer. May read the item
  // unless its size tells enough.
  virtual std::optional<std::uint64_t> text_length(std::uint64_t /*record*/,
                                                   std::uint64_t /*known*/) const {
    return std::nullopt;
  }
  // Frames per second of audio, where all items that are undamaged agree.
  virtual std::optional<std::uint32_t> rate_hz() const { return std::nullopt; }
  // The first two records of audio that do not agree, for a message; empty where all do.
  virtual std::string rate_clash() const { return {}; }
};

}  // namespace npyfs
