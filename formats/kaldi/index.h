// SPDX-License-Identifier: Apache-2.0
//
// The objects of one table: where they lie and what they are. About 48 bytes and its key for each.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/bytes/page_array.h"
#include "formats/bytes/string_list.h"
#include "formats/damage_list.h"
#include "formats/kaldi/cursor.h"
#include "formats/kaldi/fault.h"
#include "formats/kaldi/object.h"
#include "formats/kaldi/text.h"
#include "formats/opening.h"
#include "formats/payloads/wav.h"
#include "formats/record_table.h"

namespace npyfs {

// What the user says the objects are (--decode x=KIND), or what nobody said.
struct Wanted {
  std::string name;                // empty: found from the bytes
  std::optional<ObjectKind> kind;  // of lines and numbers; nothing for matrix and vector
  // Text is taken line by line, brackets mean nothing.
  bool takes_text_by_line() const { return kind && *kind != ObjectKind::kWave; }
};

// Nothing for words that no Kaldi object is called.
std::optional<Wanted> parse_wanted(const std::string& name);

// The words that parse_wanted() takes, but for the empty one and "raw", which every format takes.
std::vector<std::string> object_kind_names();

// Built by one thread, then immutable.
struct ObjectIndex {
  std::vector<SourcePtr> sources;       // Object::source is an index into them
  std::vector<SourcePtr> more_sources;  // what else the table comes from (scripts, segments)
  StringList keys;
  PageArray<Object> objects;
  std::vector<std::pair<std::uint64_t, ObjectRange>> ranges;  // of some records, ascending
  DamageList damage;
  // The type of matrices, vectors and numbers: float64 if all of them are doubles, else float32.
  bool as_double = false;
  // The rate of all waves, if they agree.
  std::optional<std::uint32_t> rate_hz;

  const ObjectRange* find_range(std::uint64_t record) const;

  // Of a table without ranges, all but the sources.
  void write(PageWriter& page) const;
  // Of one source. Throws kCorrupt where the page holds none.
  static ObjectIndex read(PageReader& page, SourcePtr source);
};

// What else an object may share a table with: no program takes lines or numbers for matrices.
enum class Company {
  kLines,   // lines of text, numbers without a type
  kBlocks,  // matrices, vectors, waves
  kEither,  // text in brackets
  kArrays,  // .npy files
  kAudio,   // audio files
};

// Reads objects, one after another, and settles what they are when all have been seen.
class ObjectReader {
 public:
  // `table` names the source; file names such as "text" tell what is in them.
  ObjectReader(Wanted wanted, std::string table, OpenContext& context)
      : wanted_(std::move(wanted)),
        table_(std::move(table)),
        context_(context),
        by_line_(wanted_.takes_text_by_line() || (wanted_.name.empty() && holds_words())) {}

  // Reads the object at the cursor and moves behind it. `bounded`: the source holds this object and
  // nothing else. Throws kCorrupt, kUnsupported or kTooLarge, and then remembers nothing of the
  // object; see parse_binary_object for what `object` is.
  void read(Cursor& cursor, bool bounded, Object& object);
  // Behind each read(): what is wrong with an object that is framed well, a file of no bytes.
  static std::optional<Error> find_fault(const Cursor& cursor, const Object& object);
  // For archives, behind each read(): throws kCorrupt where the object is not of the kind of those
  // before it.
  void check_company(const Cursor& cursor, const Object& object);
  // Whether it was the file's looks that told what its objects are.
  bool has_guessed() const { return int_kind_ && wanted_.name.empty(); }
  // What read() has found so far decides about brackets, hence to be asked when all are read.
  Company company_of(const Object& object) const;

  // Makes up its mind about texts and numbers, once for the table; damaged objects must be as they
  // are by default. `refuse` gets each record whose text is not of the kind of all others.
  using Refuse = std::function<void(std::uint64_t record, const Error& error)>;
  void settle(ObjectIndex& index, const Refuse& refuse);

 private:
  bool holds_words() const;
  ObjectKind int_kind(Cursor& cursor, std::span<const std::byte> head);
  void read_binary(Cursor& cursor, std::span<const std::byte> head, Object& object);
  WavHeader read_wave(Cursor& cursor, bool bounded, Object& object);
  void read_file(Cursor& cursor, bool bounded, Object& object) const;
  void note_wave(const Cursor& cursor, const Object& object, const WavHeader& header);
  void read_text(Cursor& cursor, bool bounded, LineTraits& traits, Object& object) const;
  void check_wanted(Cursor& cursor, Object& object) const;
  ObjectKind line_kind() const;
  void settle_line(ObjectKind kind, std::string_view line, const MakeFault& fault,
                   Object& object) const;
  bool are_matrices(const ObjectIndex& index) const;
  void settle_floats(ObjectIndex& index) const;

  Wanted wanted_;
  std::string table_;
  OpenContext& context_;
  std::optional<ObjectKind> int_kind_;  // of objects that were accepted
  int guesses_ = 0;
  bool by_line_;  // text is taken line by line
  LineTraits traits_;
  std::optional<std::uint32_t> rate_hz_;
  bool rates_differ_ = false;
  Company company_ = Company::kEither;  // of those seen so far
  std::uint64_t truncated_ = 0;
};

// "NPY" or "AUDIO" if a file in kaldiio's envelope begins so; else empty. 6 bytes are enough.
std::string_view kaldiio_file(std::span<const std::byte> head);

// What an object may share a table with, for messages.
std::string_view company_name(Company company);

// The object's bytes as they are stored. Throws as ByteSource::read_at.
std::string stored_bytes(const ObjectIndex& index, const Object& object);

// Kaldi's option `s`: the first record whose key is not above that of the one before it.
std::optional<std::uint64_t> first_unsorted(const StringList& keys);
// What to say of it.
std::string unsorted_text(const StringList& keys, std::uint64_t record);

// The table of an index that is complete.
std::shared_ptr<const RecordTable> make_kaldi_table(ObjectIndex index);

}  // namespace npyfs
