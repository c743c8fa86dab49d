// SPDX-License-Identifier: Apache-2.0
//
// The objects of one table: where they lie and what they are. About 48 bytes and its key for each.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/bytes/string_list.h"
#include "formats/damage_list.h"
#include "formats/format.h"
#include "formats/kaldi/cursor.h"
#include "formats/kaldi/object.h"
#include "formats/kaldi/text.h"

namespace npyfs {

// What the user says the objects are (--decode x=KIND), or what nobody said.
struct Wanted {
  std::string name;                // empty: found from the bytes
  std::optional<ObjectKind> kind;  // of lines and numbers; nothing for matrix and vector
  // Text is taken line by line, brackets mean nothing.
  bool lines() const { return kind && *kind != ObjectKind::kWave; }
};

// Nothing for words that no Kaldi object is called.
std::optional<Wanted> parse_wanted(const std::string& name);

// Built by one thread, then immutable.
struct ObjectIndex {
  std::vector<SourcePtr> sources;       // Object::source is an index into them
  std::vector<SourcePtr> more_sources;  // what else the table comes from (scripts, segments)
  StringList keys;
  std::vector<Object> objects;
  std::vector<std::pair<std::uint64_t, ObjectRange>> ranges;  // of some records, ascending
  DamageList damage;
  // Of matrices, vectors and numbers; float32 unless all of them are doubles.
  bool as_double = false;
  // Of all waves, where they agree.
  std::optional<std::uint32_t> rate_hz;

  const ObjectRange* find_range(std::uint64_t record) const;
};

// Reads objects, one after another, and settles what they are when all have been seen.
class ObjectReader {
 public:
  // `table` names the source; file names such as "text" tell what is in them.
  ObjectReader(Wanted wanted, std::string table, OpenContext& context)
      : wanted_(std::move(wanted)), table_(std::move(table)), context_(context) {}

  // Reads the object at the cursor and moves behind it. `bounded`: the source holds this object and
  // nothing else. Throws kCorrupt or kUnsupported; see parse_binary_object for `object`.
  void read(Cursor& cursor, bool bounded, Object& object);
  // Makes up its mind about texts and numbers, once for the table. Throws kCorrupt.
  void settle(ObjectIndex& index);

 private:
  void read_wave(Cursor& cursor, bool bounded, Object& object);
  void check_wanted(Cursor& cursor, const Object& object) const;
  void check_company(Cursor& cursor, const Object& object);
  ObjectKind line_kind() const;
  void settle_line(const ObjectIndex& index, ObjectKind kind, Object& object) const;
  void settle_brackets(ObjectIndex& index, ObjectKind kind) const;
  void settle_floats(ObjectIndex& index) const;

  Wanted wanted_;
  std::string table_;
  OpenContext& context_;
  std::optional<ObjectKind> int_kind_;
  LineTraits traits_;
  std::optional<std::uint32_t> rate_hz_;
  bool rates_differ_ = false;
  bool seen_lines_ = false;   // of text, or numbers without a type
  bool seen_blocks_ = false;  // matrices, vectors, waves
  std::uint64_t truncated_ = 0;
};

// "<file> at byte <offset>: <text>", the place of an object.
MakeFault fault_at(const ByteSource& source, std::uint64_t offset);

// The object's bytes as they are stored.
std::string read_object(const ObjectIndex& index, const Object& object);

// The table of an index that is complete.
std::shared_ptr<const RecordTable> make_kaldi_table(ObjectIndex index);

}  // namespace npyfs
