// SPDX-License-Identifier: Apache-2.0
//
// Objects as array items: those that lie in the file as the array wants them are mapped, the others
// decoded.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/bytes/npy_header.h"
#include "formats/bytes/utf8.h"
#include "formats/extents.h"
#include "formats/kaldi/index.h"
#include "formats/kaldi/values.h"

namespace npyfs {

namespace {

// A posterior, or a list of lists, makes several arrays.
enum class Part { kMain, kWeights, kCounts };

// The matrix or vector as it is stored, before a range cuts it.
struct Extended {
  std::uint64_t rows;
  std::uint64_t cols;  // 1 for vectors
};
Extended full_extent(const Object& object) {
  return {object.rows, is_vector(object.kind) ? 1 : object.cols};
}

class ObjectColumn : public Column {
 public:
  ObjectColumn(std::shared_ptr<const ObjectIndex> index, Part part, bool as_double,
               std::uint32_t text_width)
      : index_(std::move(index)), part_(part), as_double_(as_double), text_width_(text_width) {}

  std::uint64_t size() const override { return index_->objects.size(); }
  std::optional<std::uint32_t> rate_hz() const override { return index_->rate_hz; }
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t /*known*/) const override {
    const Object& object = index_->objects[record];
    return object.kind == ObjectKind::kTokens ? std::optional<std::uint64_t>(object.cols)
                                              : std::nullopt;
  }

  void inspect(std::uint64_t record, Item& item) const override {
    item.damage = index_->damage.find(record);
    item.present = true;
    if (item.damage != nullptr) {
      return;
    }
    const Object& object = index_->objects[record];
    set_dtype(object, item.dtype);
    set_shape(record, object, item.shape);
  }

  // Floats of the other width, and text of other room: where all objects are such.
  std::shared_ptr<const Column> converted(const DType& dtype) const override {
    if (dtype.kind == 'U' && all_are([](ObjectKind kind) { return kind == ObjectKind::kTokens; })) {
      return std::make_shared<ObjectColumn>(index_, part_, as_double_, dtype.itemsize / 4);
    }
    if ((dtype == DType::simple("<f4") || dtype == DType::simple("<f8")) && all_are(is_float)) {
      return std::make_shared<ObjectColumn>(index_, part_, dtype.itemsize == 8, text_width_);
    }
    return nullptr;
  }

  bool decoded(std::uint64_t record) const override {
    const Object& object = index_->objects[record];
    if (is_wave(object.kind)) {
      return object.channels > 0 || wav_needs_decoding(object.sample, object.big_endian);
    }
    const bool single =
        object.kind == ObjectKind::kFloatMatrix || object.kind == ObjectKind::kFloatVector;
    const bool wide =
        object.kind == ObjectKind::kDoubleMatrix || object.kind == ObjectKind::kDoubleVector;
    return object.text || !(as_double_ ? wide : single);
  }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    const Object& object = index_->objects[record];
    const ByteSource& source = *index_->sources[object.source];
    const std::uint64_t data = object.offset + object.header_nbytes;
    const ObjectRange* part = index_->find_range(record);
    if (part == nullptr) {
      plan.add_extent(source, data + range.begin, range.nbytes(), {});
      return;
    }
    const std::uint64_t element = as_double_ ? 8 : 4;
    const std::uint64_t stride = full_extent(object).cols * element;
    const std::uint64_t width = part->cols * element;
    const std::uint64_t base = data + part->first_row * stride + part->first_col * element;
    while (!range.empty()) {
      const std::uint64_t row = range.begin / width;
      const std::uint64_t end = std::min(range.end, (row + 1) * width);
      plan.add_extent(source, base + row * stride + (range.begin - row * width), end - range.begin,
                      {});
      range.begin = end;
    }
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const Object& object = index_->objects[record];
    const std::string stored = stored_bytes(*index_, object);
    const auto bytes = std::as_bytes(std::span(stored));
    const MakeFault fault = fault_at(*index_->sources[object.source], object.offset);
    if (is_wave(object.kind)) {
      decode_samples(object, bytes.subspan(object.header_nbytes), out);
    } else if (object.kind == ObjectKind::kTokens) {
      write_utf32(join_words(stored), out);
    } else if (is_matrix(object.kind) || is_vector(object.kind)) {
      decode_range(record, object, bytes, out, fault);
    } else {
      decode_lists(object, stored, out, fault);
    }
  }

 private:
  static bool is_float(ObjectKind kind) {
    return is_matrix(kind) || is_vector(kind) || kind == ObjectKind::kFloat ||
           kind == ObjectKind::kDouble;
  }
  template <typename Test>
  bool all_are(const Test& test) const {
    for (std::uint64_t record = 0; record < size(); ++record) {
      if (!test(index_->objects[record].kind) && index_->damage.find(record) == nullptr) {
        return false;
      }
    }
    return true;
  }

  static void decode_samples(const Object& object, std::span<const std::byte> stored,
                             std::span<std::byte> out) {
    if (object.channels == 0) {
      decode_wav(object.sample, object.big_endian, stored, out);
      return;
    }
    const std::size_t nbytes = wav_sample_nbytes(object.sample);
    std::vector<std::byte> chosen(object.rows * nbytes);
    for (std::size_t frame = 0; frame < object.rows; ++frame) {
      std::memcpy(chosen.data() + frame * nbytes,
                  stored.data() + (frame * object.channels + object.channel) * nbytes, nbytes);
    }
    decode_wav(object.sample, object.big_endian, chosen, out);
  }

  void set_dtype(const Object& object, DType& dtype) const {
    static const DType kInt = DType::simple("<i4");
    static const DType kSingle = DType::simple("<f4");
    static const DType kWide = DType::simple("<f8");
    switch (object.kind) {
      case ObjectKind::kTokens: {
        const std::uint32_t width = std::max({1U, object.cols, text_width_});
        if (dtype.kind != 'U' || dtype.itemsize != width * 4) {
          dtype = DType::simple(fmt::format("<U{}", width));
        }
        return;
      }
      case ObjectKind::kWave:
      case ObjectKind::kPcm:
        dtype = wav_dtype(object.sample);
        return;
      case ObjectKind::kBool:
        dtype = DType::simple("|b1");
        return;
      case ObjectKind::kInt32:
      case ObjectKind::kInt32Vector:
      case ObjectKind::kInt32Vectors:
      case ObjectKind::kInt32Pairs:
        dtype = kInt;
        return;
      case ObjectKind::kPosterior:
        dtype = part_ == Part::kWeights ? kSingle : kInt;
        return;
      case ObjectKind::kFloatPairs:
        dtype = kSingle;
        return;
      default:
        dtype = as_double_ ? kWide : kSingle;
    }
  }

  void set_shape(std::uint64_t record, const Object& object, Shape& shape) const {
    if (const ObjectRange* range = index_->find_range(record)) {
      shape.assign({range->rows, range->cols});
      shape.resize(is_vector(object.kind) ? 1 : 2);
      return;
    }
    switch (object.kind) {
      case ObjectKind::kInt32:
      case ObjectKind::kFloat:
      case ObjectKind::kDouble:
      case ObjectKind::kBool:
      case ObjectKind::kTokens:
        shape.clear();
        return;
      case ObjectKind::kFloatVector:
      case ObjectKind::kDoubleVector:
      case ObjectKind::kInt32Vector:
        shape.assign({object.rows});
        return;
      case ObjectKind::kInt32Pairs:
      case ObjectKind::kFloatPairs:
        shape.assign({object.rows, 2});
        return;
      case ObjectKind::kInt32Vectors:
      case ObjectKind::kPosterior:
        shape.assign({part_ == Part::kCounts ? object.rows : object.cols});
        return;
      default:
        shape.assign({object.rows, object.cols});
    }
  }

  void decode_range(std::uint64_t record, const Object& object, std::span<const std::byte> stored,
                    std::span<std::byte> out, const MakeFault& fault) const {
    const ObjectRange* range = index_->find_range(record);
    if (range == nullptr) {
      decode_numbers(object, stored, as_double_, out, fault);
      return;
    }
    const Extended full = full_extent(object);
    const std::uint64_t element = as_double_ ? 8 : 4;
    std::vector<std::byte> all(full.rows * full.cols * element);
    decode_numbers(object, stored, as_double_, all, fault);
    for (std::uint64_t row = 0; row < range->rows; ++row) {
      std::memcpy(out.data() + row * range->cols * element,
                  all.data() + ((range->first_row + row) * full.cols + range->first_col) * element,
                  range->cols * element);
    }
  }

  void decode_lists(const Object& object, std::string_view stored, std::span<std::byte> out,
                    const MakeFault& fault) const {
    const ListValues values = object.text
                                  ? parse_text_values(object.kind, stored, as_double_, fault)
                                  : parse_binary_lists(object, stored, fault);
    if (part_ == Part::kCounts) {
      store_all<std::int32_t>(values.counts, out, fault);
    } else if (part_ == Part::kWeights || object.kind == ObjectKind::kFloatPairs) {
      store_all<float>(values.numbers, out, fault);
    } else if (object.kind == ObjectKind::kFloat || object.kind == ObjectKind::kDouble) {
      as_double_ ? store_all<double>(values.numbers, out, fault)
                 : store_all<float>(values.numbers, out, fault);
    } else if (object.kind == ObjectKind::kBool) {
      store_all<std::uint8_t>(values.integers, out, fault);
    } else {
      store_all<std::int32_t>(values.integers, out, fault);
    }
  }

  std::shared_ptr<const ObjectIndex> index_;
  Part part_;
  bool as_double_;
  std::uint32_t text_width_;
};

class StoredColumn : public ByteColumn {
 public:
  explicit StoredColumn(std::shared_ptr<const ObjectIndex> index) : index_(std::move(index)) {}

  std::uint64_t size() const override { return index_->objects.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    const Object& object = index_->objects[record];
    out.assign(1, {index_->sources[object.source].get(), object.offset, object.nbytes});
    return true;
  }
  const Damage* damage(std::uint64_t record) const override { return index_->damage.find(record); }

 private:
  std::shared_ptr<const ObjectIndex> index_;
};

class KaldiTable : public RecordTable {
 public:
  explicit KaldiTable(std::shared_ptr<const ObjectIndex> index) : index_(std::move(index)) {
    const auto bytes = std::make_shared<StoredColumn>(index_);
    stored_.push_back({"", bytes});
    Field main = make_field("x", Part::kMain);
    main.bytes = bytes;
    main.time_series = any_is([](ObjectKind kind) { return is_matrix(kind) || is_wave(kind); });
    if (any_is(is_file)) {
      take_files(main);
    }
    fields_.push_back(std::move(main));
    add_lists();
  }

  std::uint64_t size() const override { return index_->objects.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override {
    std::vector<SourcePtr> all = index_->sources;
    all.insert(all.end(), index_->more_sources.begin(), index_->more_sources.end());
    return all;
  }
  KeyKind key_kind() const override { return KeyKind::kText; }
  std::string_view text_key(std::uint64_t record) const override { return index_->keys[record]; }
  const Damage* damage(std::uint64_t record) const override { return index_->damage.find(record); }
  std::uint64_t damaged_count() const override { return index_->damage.size(); }

 private:
  Field make_field(const char* name, Part part) const {
    Field field;
    field.name = name;
    field.typed = std::make_shared<ObjectColumn>(index_, part, index_->as_double, 0);
    return field;
  }

  // Damaged objects are not asked: nobody knows what they are.
  template <typename Test>
  bool any_is(const Test& test) const {
    for (std::uint64_t record = 0; record < size(); ++record) {
      if (test(index_->objects[record].kind) && index_->damage.find(record) == nullptr) {
        return true;
      }
    }
    return false;
  }

  // Files of another format are payloads. A table has one kind of them, or none.
  void take_files(Field& main) const {
    const bool audio = any_is([](ObjectKind kind) { return kind == ObjectKind::kAudio; });
    main.typed = nullptr;
    main.extension = audio ? "wav" : "npy";
    main.time_series = audio || holds_matrices(*main.bytes);
  }

  // Going by the first .npy file that can be understood.
  bool holds_matrices(const ByteColumn& files) const {
    for (std::uint64_t record = 0; record < size(); ++record) {
      try {
        if (const auto header =
                files.damage(record) == nullptr ? read_npy_head(files, record) : std::nullopt) {
          return header->shape.size() == 2;
        }
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
          throw;
        }
      }
    }
    return false;
  }

  static std::optional<NpyHeader> read_npy_head(const ByteColumn& files, std::uint64_t record) {
    constexpr std::size_t kFirstNbytes = 12;
    const auto nbytes = npy_header_nbytes(read_head(files, record, kFirstNbytes));
    return nbytes ? std::optional(parse_npy_header(read_head(files, record, *nbytes), "", 0))
                  : std::nullopt;
  }

  void add_lists() {
    const bool posteriors = any_is([](ObjectKind kind) { return kind == ObjectKind::kPosterior; });
    const bool lists = any_is([](ObjectKind kind) { return kind == ObjectKind::kInt32Vectors; });
    const bool others = any_is([](ObjectKind kind) {
      return kind != ObjectKind::kPosterior && kind != ObjectKind::kInt32Vectors;
    });
    if (posteriors && !lists && !others) {
      fields_.push_back(make_field("x_weights", Part::kWeights));
    }
    if (posteriors != lists && !others) {
      fields_.push_back(make_field("x_counts", Part::kCounts));
    }
    for (std::size_t i = 1; i < fields_.size(); ++i) {
      fields_[i].companion = true;
    }
  }

  std::shared_ptr<const ObjectIndex> index_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

}  // namespace

std::shared_ptr<const RecordTable> make_kaldi_table(ObjectIndex index) {
  return std::make_shared<KaldiTable>(std::make_shared<const ObjectIndex>(std::move(index)));
}

}  // namespace npyfs
