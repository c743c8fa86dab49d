// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "formats/bytes/text_view.h"
#include "formats/bytes/words.h"
#include "formats/kaldi/binary.h"

namespace npyfs {

namespace {

struct KindName {
  std::string_view name;
  std::optional<ObjectKind> kind;
};
constexpr std::array<KindName, 15> kKindNames = {{{"matrix", std::nullopt},
                                                  {"vector", std::nullopt},
                                                  {"int32", ObjectKind::kInt32},
                                                  {"float", ObjectKind::kFloat},
                                                  {"double", ObjectKind::kDouble},
                                                  {"bool", ObjectKind::kBool},
                                                  {"int32vector", ObjectKind::kInt32Vector},
                                                  {"int32vectors", ObjectKind::kInt32Vectors},
                                                  {"int32pairs", ObjectKind::kInt32Pairs},
                                                  {"floatpairs", ObjectKind::kFloatPairs},
                                                  {"posterior", ObjectKind::kPosterior},
                                                  {"token", ObjectKind::kTokens},
                                                  {"tokens", ObjectKind::kTokens},
                                                  {"wave", ObjectKind::kWave},
                                                  {"raw", std::nullopt}}};

// Files of a data directory that hold words, whatever these look like.
constexpr std::array<std::string_view, 7> kWordFiles = {
    "text", "utt2spk", "spk2utt", "utt2lang", "spk2gender", "utt2uniq", "reco2file_and_channel"};

// PKL is followed by a pickle without a length.
bool at_pickle(std::span<const std::byte> head) {
  const std::string_view text = as_text(head);
  return text.starts_with("PKL") && text.size() > 3 &&
         !is_blank(static_cast<unsigned char>(text[3]));
}

// Whether a line must be looked at again once all have been read: where the traits that all lines
// have in common have not told what it holds, or how much.
bool needs_text(ObjectKind kind, const Wanted& wanted) {
  if (kind == ObjectKind::kTokens) {
    return false;
  }
  const bool counted = kind <= ObjectKind::kInt32Vector;  // scalars too: of one word each
  return !wanted.name.empty() || !counted;
}

// The texts of objects, read in order.
class LineTexts {
 public:
  explicit LineTexts(const ObjectIndex& index) : index_(index) {}

  // Valid until the next call. Throws as ByteSource::read_at.
  std::string_view read(const Object& object) {
    if (window_ == nullptr || source_ != object.source) {
      source_ = object.source;
      window_ = std::make_unique<WindowReader>(*index_.sources[source_], kNearNbytes);
    }
    const auto bytes = window_->at(object.offset, object.nbytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  static constexpr std::size_t kNearNbytes = 4096;

  const ObjectIndex& index_;
  std::uint32_t source_ = 0;
  std::unique_ptr<WindowReader> window_;
};

// How far a wave in an archive reaches: chunks behind its samples are part of it, where its own
// header says so and they look like chunks.
std::uint64_t wave_nbytes(Cursor& cursor, std::uint64_t offset, const WavHeader& header) {
  const std::uint64_t data_end = header.data_offset + header.frames * header.frame_nbytes;
  const std::uint64_t odd = data_end & 1;
  if (header.truncated || header.riff_nbytes <= data_end + odd + 8) {
    return data_end;
  }
  cursor.seek(offset + data_end + odd);
  const auto chunk = cursor.look(8);
  const bool named = chunk.size() == 8 && std::all_of(chunk.begin(), chunk.begin() + 4, [](auto c) {
                       return c >= std::byte{' '} && c < std::byte{0x7f};
                     });
  if (!named || header.riff_nbytes > cursor.source().nbytes() - offset) {
    return data_end;
  }
  return header.riff_nbytes;
}

constexpr std::size_t kMostKaldiioHead = 6;

bool holds_integers(ObjectKind kind) {
  return kind >= ObjectKind::kInt32 && kind <= ObjectKind::kPosterior &&
         kind != ObjectKind::kFloat && kind != ObjectKind::kDouble;
}

}  // namespace

std::string_view kind_name(ObjectKind kind) {
  if (is_matrix(kind) || is_vector(kind)) {
    return is_matrix(kind) ? "matrix" : "vector";
  }
  for (const KindName& known : kKindNames) {
    if (known.kind == kind) {
      return known.name;
    }
  }
  if (is_file(kind)) {
    return kind == ObjectKind::kNumpy ? ".npy file" : "audio file";
  }
  return kind == ObjectKind::kPcm ? "wave" : "text";
}

std::string_view company_name(Company company) {
  switch (company) {
    case Company::kLines:
      return "number or line";
    case Company::kArrays:
      return ".npy file";
    case Company::kAudio:
      return "audio file";
    default:
      return "matrix, vector or wave";
  }
}

std::string_view kaldiio_file(std::span<const std::byte> head) {
  for (const std::string_view name : {"NPY", "AUDIO"}) {
    if (as_text(head).starts_with(name) && head.size() > name.size() &&
        head[name.size()] >= std::byte{1} && head[name.size()] <= std::byte{8}) {
      return name;
    }
  }
  return {};
}

std::optional<Wanted> parse_wanted(const std::string& name) {
  if (name.empty()) {
    return Wanted{};
  }
  for (const KindName& known : kKindNames) {
    if (known.name == name) {
      return Wanted{name == "raw" ? "" : name, known.kind};
    }
  }
  return std::nullopt;
}

std::vector<std::string> object_kind_names() {
  std::vector<std::string> names;
  for (const KindName& known : kKindNames) {
    if (known.name != "raw") {
      names.emplace_back(known.name);
    }
  }
  return names;
}

void ObjectIndex::write(PageWriter& page) const {
  keys.write(page);
  page.array(objects);
  damage.write(page);
  page.flag(as_double);
  page.optional(rate_hz);
}

ObjectIndex ObjectIndex::read(PageReader& page, SourcePtr source) {
  ObjectIndex index;
  index.sources.push_back(std::move(source));
  index.keys = StringList::read(page);
  index.objects = page.array<Object>(index.keys.size());
  for (const Object& object : index.objects) {
    PageReader::require(object.source == 0 && object.header_nbytes <= object.nbytes &&
                        lies_within(object.offset, object.nbytes, index.sources[0]->nbytes()));
  }
  index.damage = DamageList::read(page);
  index.as_double = page.flag();
  if (const auto rate_hz = page.optional()) {
    index.rate_hz = static_cast<std::uint32_t>(*rate_hz);
  }
  return index;
}

const ObjectRange* ObjectIndex::find_range(std::uint64_t record) const {
  const auto found =
      std::lower_bound(ranges.begin(), ranges.end(), record,
                       [](const auto& range, std::uint64_t r) { return range.first < r; });
  return found != ranges.end() && found->first == record ? &found->second : nullptr;
}

// Nothing is remembered of an object before it has passed all checks: one wrong offset in a script
// must not change what the other objects are taken for.
void ObjectReader::read(Cursor& cursor, bool bounded, Object& object) {
  object = {};
  const auto head = cursor.look(12);
  LineTraits traits = traits_;
  std::optional<WavHeader> wave;
  if (!head.empty() && head[0] == std::byte{0}) {
    read_binary(cursor, head, object);
  } else if (is_wav(head) && !by_line_) {
    wave = read_wave(cursor, bounded, object);
  } else if (!by_line_ && (!kaldiio_file(head).empty() || as_text(head).starts_with("fLaC"))) {
    read_file(cursor, bounded, object);
  } else if (!by_line_ && at_pickle(head)) {
    throw cursor.fault(cursor.offset(),
                       "the object is a pickle of kaldiio's (PKL), which is never loaded, expected "
                       "an array or audio");
  } else {
    read_text(cursor, bounded, traits, object);
  }
  check_wanted(cursor, object);
  traits_ = traits;
  if (wave) {
    note_wave(cursor, object, *wave);
  }
  if (!object.text && object.kind >= ObjectKind::kInt32 && object.kind <= ObjectKind::kPosterior &&
      object.kind != ObjectKind::kDouble && object.kind != ObjectKind::kBool) {
    int_kind_ = object.kind;
  }
}

// What an object is that begins with a four-byte number: as --decode says, as those before it, or
// as the file looks from here on.
ObjectKind ObjectReader::int_kind(Cursor& cursor, std::span<const std::byte> head) {
  constexpr int kMostGuesses = 100;  // each may look at a thousand objects
  if (wanted_.kind && holds_integers(*wanted_.kind)) {
    return *wanted_.kind;
  }
  if (wanted_.name == "float" || wanted_.name == "double") {
    return ObjectKind::kFloat;
  }
  if (int_kind_) {
    return *int_kind_;
  }
  const bool ambiguous = head.size() > 2 && head[2] == std::byte{4};
  return ambiguous && ++guesses_ <= kMostGuesses ? guess_int_kind(cursor.source(), cursor.offset())
                                                 : ObjectKind::kInt32Vector;
}

void ObjectReader::read_binary(Cursor& cursor, std::span<const std::byte> head, Object& object) {
  const bool guessed = head.size() > 2 && head[2] == std::byte{4} && wanted_.name.empty();
  const ObjectKind kind = int_kind(cursor, head);
  try {
    parse_binary_object(cursor, kind, object);
  } catch (const Error& error) {
    if (!guessed || error.kind() != ErrorKind::kCorrupt) {
      throw;
    }
    throw Error(error.kind(), fmt::format("{}, or say what it is (it was taken for {}): --decode "
                                          "x=int32",
                                          error.what(), kind_name(kind)));
  }
}

void ObjectReader::read_text(Cursor& cursor, bool bounded, LineTraits& traits,
                             Object& object) const {
  const std::uint64_t begin = cursor.offset();
  parse_text_object(cursor, by_line_, traits, object);
  if (traits.binary && wanted_.name.empty()) {
    throw cursor.fault(begin,
                       "neither an object begins here nor is it text (it has a zero byte), "
                       "expected one of them");
  }
  if (bounded && object.kind == ObjectKind::kLine && wanted_.name.empty()) {
    throw cursor.fault(begin,
                       "the file begins with neither an object nor a bracket nor RIFF, "
                       "expected one object");
  }
}

Company ObjectReader::company_of(const Object& object) const {
  const ObjectKind kind = object.kind;
  if (is_file(kind)) {
    return kind == ObjectKind::kNumpy ? Company::kArrays : Company::kAudio;
  }
  if (kind == ObjectKind::kLine || (kind >= ObjectKind::kInt32 && kind <= ObjectKind::kPosterior)) {
    return Company::kLines;
  }
  // Brackets among lines are posteriors, if a line has several.
  return object.text && !object.row_break && kind != ObjectKind::kSparse && traits_.bracketed
             ? Company::kEither
             : Company::kBlocks;
}

void ObjectReader::check_company(const Cursor& cursor, const Object& object) {
  const bool brackets = object.text && object.kind != ObjectKind::kLine;
  const Company company = brackets ? Company::kEither : company_of(object);
  company_ = company_ == Company::kEither ? company : company_;
  if (company != Company::kEither && company != company_) {
    throw cursor.fault(object.offset, fmt::format("the object is of type {}, expected one of the "
                                                  "kind of those before it, {}",
                                                  kind_name(object.kind), company_name(company_)));
  }
}

void ObjectReader::check_wanted(Cursor& cursor, Object& object) const {
  if (wanted_.name.empty() || object.kind == ObjectKind::kLine) {
    return;
  }
  std::string_view found = kind_name(object.kind);
  const bool brackets = object.text && object.kind == ObjectKind::kFloatVector;
  const bool number = object.kind == ObjectKind::kFloat || object.kind == ObjectKind::kDouble;
  if (found == wanted_.name || (brackets && (wanted_.name == "matrix" || !object.row_break)) ||
      (number && (wanted_.name == "float" || wanted_.name == "double"))) {
    return;
  }
  object.began = false;  // it is whole: the choice is wrong
  throw cursor.fault(
      object.offset,
      fmt::format("the object is a {}, expected a {} as --decode says", found, wanted_.name));
}

WavHeader ObjectReader::read_wave(Cursor& cursor, bool bounded, Object& object) {
  object.kind = ObjectKind::kWave;
  object.began = true;
  object.offset = cursor.offset();
  const std::uint64_t avail = cursor.left();
  const WavHeader header = parse_wav(cursor.source(), cursor.window(), object.offset, avail);
  if (header.unbounded && !bounded) {
    throw cursor.fault(object.offset,
                       "the wave does not say its length (a stream), expected it, as "
                       "other objects may follow");
  }
  if (header.frames > std::numeric_limits<std::uint32_t>::max() ||
      header.data_offset > std::numeric_limits<std::uint32_t>::max()) {
    throw cursor.fault(object.offset, "the wave has 2^32 frames or more, expected fewer");
  }
  object.rows = static_cast<std::uint32_t>(header.frames);
  object.cols = header.channels;
  object.header_nbytes = static_cast<std::uint32_t>(header.data_offset);
  object.sample = header.sample;
  object.big_endian = header.big_endian;
  object.nbytes = bounded ? avail : std::min(avail, wave_nbytes(cursor, object.offset, header));
  cursor.seek(object.offset + object.nbytes);
  return header;
}

// "NPY" or "AUDIO", the number of length bytes, the length, least byte first, the file. A bare flac
// may be all that there is.
void ObjectReader::read_file(Cursor& cursor, bool bounded, Object& object) const {
  const std::string_view name = kaldiio_file(cursor.look(kMostKaldiioHead));
  object.offset = cursor.offset();
  object.began = true;
  object.kind = name == "NPY" ? ObjectKind::kNumpy : ObjectKind::kAudio;
  if (name.empty() && !bounded) {
    throw cursor.fault(object.offset,
                       "the flac does not say its length, expected it, as other objects may "
                       "follow");
  }
  std::uint64_t nbytes = cursor.left();
  if (!name.empty()) {
    cursor.seek(cursor.offset() + name.size());
    const int count = cursor.take();
    nbytes = 0;
    for (int i = 0; i < count; ++i) {
      nbytes |= std::uint64_t{cursor.plain<std::uint8_t>("the length")} << (8 * i);
    }
    object.offset = cursor.offset();
  }
  object.nbytes = nbytes;
  cursor.hop(nbytes, "the file");
}

std::optional<Error> ObjectReader::find_fault(const Cursor& cursor, const Object& object) {
  if (!is_file(object.kind) || object.nbytes > 0) {
    return std::nullopt;
  }
  return cursor.fault(object.offset,
                      fmt::format("the {} has 0 bytes, expected a header", kind_name(object.kind)));
}

void ObjectReader::note_wave(const Cursor& cursor, const Object& object, const WavHeader& header) {
  if (header.truncated && ++truncated_ == 1) {
    context_.warn(cursor
                      .fault(object.offset,
                             fmt::format("the wave promises more than the {} frames that are "
                                         "there, expected all of them (such waves are shown as "
                                         "far as they go)",
                                         header.frames))
                      .what());
  }
  rates_differ_ = rates_differ_ || (rate_hz_ && *rate_hz_ != header.rate_hz);
  rate_hz_ = header.rate_hz;
}

// The names of a data directory's files say that they hold words.
bool ObjectReader::holds_words() const {
  const std::string_view file = std::string_view(table_).substr(table_.find_last_of('/') + 1);
  return std::find(kWordFiles.begin(), kWordFiles.end(), file) != kWordFiles.end() ||
         file.starts_with("text.");
}

ObjectKind ObjectReader::line_kind() const {
  if (wanted_.kind) {
    return *wanted_.kind;
  }
  const std::string_view file = std::string_view(table_).substr(table_.find_last_of('/') + 1);
  if (holds_words() || traits_.lines == 0) {
    return ObjectKind::kTokens;
  }
  if (traits_.bracketed) {
    return ObjectKind::kPosterior;
  }
  if (traits_.booleans) {
    return ObjectKind::kBool;
  }
  if (traits_.numbers && traits_.lists) {
    return !traits_.integers    ? ObjectKind::kFloatPairs
           : traits_.terminated ? ObjectKind::kInt32Vectors
                                : ObjectKind::kInt32Pairs;
  }
  if (traits_.integers) {
    return traits_.single ? ObjectKind::kInt32 : ObjectKind::kInt32Vector;
  }
  if (traits_.numbers && traits_.single) {
    return file == "utt2dur" || file == "reco2dur" ? ObjectKind::kDouble : ObjectKind::kFloat;
  }
  return ObjectKind::kTokens;
}

// Texts in brackets are matrices if one of them has a line end in it, else vectors; or the frames
// of posteriors, if a line has several.
void ObjectReader::settle(ObjectIndex& index, const Refuse& refuse) {
  const ObjectKind kind = line_kind();
  const bool matrices = are_matrices(index);
  const bool posteriors = traits_.bracketed && kind == ObjectKind::kPosterior;
  LineTexts texts(index);
  for (std::uint64_t record = 0; record < index.objects.size(); ++record) {
    Object& object = index.objects.built()[record];
    const bool brackets = object.text && object.kind == ObjectKind::kFloatVector;
    if (brackets && !posteriors && !matrices) {
      object.rows = object.cols;
      object.cols = 0;
    } else if (brackets && matrices) {
      object.kind = ObjectKind::kFloatMatrix;
    } else if (brackets || object.kind == ObjectKind::kLine) {
      try {
        settle_line(kind, needs_text(kind, wanted_) ? texts.read(object) : std::string_view(),
                    fault_at(*index.sources[object.source], object.offset), object);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kCorrupt) {
          throw;
        }
        refuse(record, error);
      }
    }
  }
  settle_floats(index);
  if (!rates_differ_) {
    index.rate_hz = rate_hz_;
  }
  if (truncated_ > 1) {
    context_.warn(fmt::format("{}: {} more waves are shorter than they promise", printable(table_),
                              truncated_ - 1));
  }
}

void ObjectReader::settle_line(ObjectKind kind, std::string_view line, const MakeFault& fault,
                               Object& object) const {
  object.kind = kind;
  if (kind == ObjectKind::kTokens) {
    if (wanted_.name == "token" && object.rows != 1) {
      throw fault(fmt::format("the line has {} words, expected 1", object.rows));
    }
    return;
  }
  if (!needs_text(kind, wanted_)) {
    object.cols = 0;  // rows: the words, each of which was found to be a number
    return;
  }
  const ListValues values = parse_text_values(kind, line, true, fault);
  const bool nested = kind == ObjectKind::kInt32Vectors || kind == ObjectKind::kPosterior;
  const bool pairs = kind == ObjectKind::kInt32Pairs || kind == ObjectKind::kFloatPairs;
  const std::size_t elements = std::max(values.integers.size(), values.numbers.size());
  object.rows = static_cast<std::uint32_t>(nested || pairs ? values.counts.size() : elements);
  object.cols = static_cast<std::uint32_t>(nested ? values.integers.size() : 0);
}

bool ObjectReader::are_matrices(const ObjectIndex& index) const {
  return wanted_.name == "matrix" ||
         (wanted_.name.empty() &&
          std::any_of(index.objects.begin(), index.objects.end(), [](const Object& object) {
            return object.row_break || (is_matrix(object.kind) && object.rows > 0);
          }));
}

void ObjectReader::settle_floats(ObjectIndex& index) const {
  bool any_single = false;
  bool any_double = false;
  for (const Object& object : index.objects) {
    const ObjectKind kind = object.kind;
    if (kind == ObjectKind::kDoubleMatrix || kind == ObjectKind::kDoubleVector ||
        kind == ObjectKind::kDouble) {
      any_double = true;
    } else if (is_matrix(kind) || is_vector(kind) || kind == ObjectKind::kFloat) {
      // Whatever is empty is written as a float32 matrix.
      any_single = any_single || object.rows > 0 || kind == ObjectKind::kFloat;
    }
  }
  index.as_double =
      wanted_.name == "double" || (wanted_.name != "float" && any_double && !any_single);
}

std::string stored_bytes(const ObjectIndex& index, const Object& object) {
  std::string stored(object.nbytes, '\0');
  index.sources[object.source]->read_at(object.offset, std::as_writable_bytes(std::span(stored)));
  return stored;
}

std::optional<std::uint64_t> first_unsorted(const StringList& keys) {
  for (std::uint64_t record = 1; record < keys.size(); ++record) {
    if (!(keys[record - 1] < keys[record])) {
      return record;
    }
  }
  return std::nullopt;
}

std::string unsorted_text(const StringList& keys, std::uint64_t record) {
  return fmt::format(
      "key '{}' comes behind '{}', expected rising keys as option s promises; leave "
      "the s out, or sort the table (LC_ALL=C)",
      printable(keys[record]), printable(keys[record - 1]));
}

}  // namespace npyfs
