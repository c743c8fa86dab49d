// SPDX-License-Identifier: Apache-2.0
//
// Text and decimal numbers as array items. Every payload is read when the column is made: the width
// of text is that of the longest.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/bytes/text_view.h"
#include "formats/bytes/utf8.h"
#include "formats/extents.h"
#include "formats/payloads/inspected_column.h"
#include "formats/payloads/payload.h"

namespace npyfs {

namespace {

// numpy's itemsize is a positive int32.
constexpr std::uint64_t kMostCodePoints = INT32_MAX / 4;

// How many code points the record's `nbytes` have, part by part; where they are more than
// kMostCodePoints, any number beyond.
std::uint64_t count_code_points(const ByteColumn& bytes, std::uint64_t record, std::uint64_t nbytes,
                                std::vector<std::byte>& part) {
  constexpr std::uint64_t kPartNbytes = std::uint64_t{1} << 20;
  if (nbytes > 4 * kMostCodePoints) {
    return nbytes / 4;
  }
  std::uint64_t count = 0;
  for (std::uint64_t at = 0; at < nbytes && count <= kMostCodePoints; at += part.size()) {
    part.resize(std::min(kPartNbytes, nbytes - at));
    read_stored(bytes, record, at, part);
    // A sequence that may go on begins the next part.
    for (std::size_t back = 1; back < 4 && at + part.size() < nbytes; ++back) {
      if (part[part.size() - back] >= std::byte{0xc0}) {
        part.resize(part.size() - back);
        break;
      }
    }
    count += utf8_length(as_text(part));
  }
  return count;
}

class TextColumn : public Column {
 public:
  TextColumn(std::shared_ptr<const ByteColumn> bytes, const RecordTable& table)
      : bytes_(std::move(bytes)) {
    std::uint64_t longest = 1;
    std::vector<std::byte> text;  // a part of one
    for (std::uint64_t record = 0; record < bytes_->size(); ++record) {
      if (bytes_->damage(record) != nullptr) {
        continue;
      }
      const std::uint64_t nbytes = stored_nbytes(*bytes_, record);
      if (nbytes <= longest) {
        continue;  // as many code points at most
      }
      if (is_mostly_holes(*bytes_, record)) {
        throw file_error(ErrorKind::kUnsupported, table.sources().front()->name(),
                         fmt::format("the text of {} has {} bytes, nearly all of them holes",
                                     record_name(table, record), nbytes));
      }
      const std::uint64_t length = count_code_points(*bytes_, record, nbytes, text);
      if (length > kMostCodePoints) {
        throw file_error(ErrorKind::kUnsupported, table.sources().front()->name(),
                         fmt::format("the text of {} has {} bytes, more than the {} characters "
                                     "that numpy takes",
                                     record_name(table, record), nbytes, kMostCodePoints));
      }
      longest = std::max(longest, length);
      note_length(record, nbytes, length);
    }
    dtype_ = DType::simple(fmt::format("<U{}", longest));
  }

  std::uint64_t size() const override { return bytes_->size(); }
  // A record without the field has an empty text.
  void inspect(std::uint64_t record, Item& item) const override {
    item.damage = bytes_->damage(record);
    item.present = true;
    item.dtype = dtype_;
    item.shape.clear();
  }
  bool decoded(std::uint64_t /*record*/) const override { return true; }
  void plan(std::uint64_t /*record*/, ByteRange /*range*/, Plan& /*plan*/) const override {}
  std::optional<std::uint64_t> text_length(std::uint64_t record,
                                           std::uint64_t known) const override {
    if (bytes_->damage(record) != nullptr) {
      return 0;
    }
    if (!lengths_.empty() && lengths_[record] != kNotLookedAt) {
      return lengths_[record];
    }
    const std::uint64_t nbytes = stored_nbytes(*bytes_, record);
    if (nbytes <= known) {
      return nbytes;  // as many code points at most
    }
    std::vector<std::byte> part;
    return count_code_points(*bytes_, record, nbytes, part);
  }

  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& context) const override {
    context.require_intact(bytes_->guard(record));
    std::vector<std::byte> text(stored_nbytes(*bytes_, record));
    read_stored(*bytes_, record, 0, text);
    write_utf32(as_text(text), out);
  }

 private:
  static constexpr std::uint32_t kNotLookedAt = UINT32_MAX;

  // Texts with one byte a code point need no note: their size says it all.
  void note_length(std::uint64_t record, std::uint64_t nbytes, std::uint64_t length) {
    if (length != nbytes && lengths_.empty()) {
      lengths_.resize(bytes_->size(), kNotLookedAt);
    }
    if (!lengths_.empty()) {
      lengths_[record] = static_cast<std::uint32_t>(length);
    }
  }

  std::shared_ptr<const ByteColumn> bytes_;
  DType dtype_;
  // Lengths of texts in code points. Empty as long as every text that was looked at has one byte
  // for each code point.
  std::vector<std::uint32_t> lengths_;
};

// As Python's int() reads it: blanks around it, a sign, `_` between digits. Nothing for anything
// else, and for what int64 does not hold.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  text = strip(text, " \t\n\v\f\r");
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') {
    text.remove_prefix(1);
  }
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return std::nullopt;
    }
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

// 8 bytes a record, in memory.
class IntegerColumn : public InspectedColumn {
 public:
  explicit IntegerColumn(std::shared_ptr<const ByteColumn> bytes)
      : InspectedColumn(std::move(bytes)), values_(size()) {}

  void look(const PayloadField& field) { look_at_all(field, 64); }

  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    plan.add_memory(reinterpret_cast<const std::byte*>(&values_[record]) + range.begin,
                    range.nbytes(), bytes().guard(record));
  }

 protected:
  void look_at(std::uint64_t record, PayloadBytes& payload) override {
    // The longest int64 with a sign, and blanks: more is something else.
    constexpr std::size_t kMostNbytes = 256;
    const auto value = payload.nbytes() <= kMostNbytes
                           ? parse_integer(as_text(payload.at(0, payload.nbytes())))
                           : std::nullopt;
    if (!value) {
      const std::string head(as_text(payload.at_most(0, 32)));
      throw Error(ErrorKind::kUnsupported,
                  payload
                      .fault(0, fmt::format("the payload is '{}', expected an integer of 64 bits",
                                            printable(head)))
                      .what());
    }
    values_[record] = *value;
  }
  bool alike(std::uint64_t /*a*/, std::uint64_t /*b*/) const override { return true; }
  bool one_array(std::uint64_t /*a*/, std::uint64_t /*b*/) const override { return true; }
  void describe(std::uint64_t /*record*/, Item& item) const override {
    item.dtype = dtype_;
    item.shape.clear();
  }

 private:
  std::vector<std::int64_t> values_;
  DType dtype_ = DType::simple("<i8");
};

}  // namespace

std::shared_ptr<const Column> make_text_column(const PayloadField& field) {
  return std::make_shared<TextColumn>(field.bytes, field.table);
}

std::shared_ptr<const Column> make_integer_column(const PayloadField& field) {
  auto column = std::make_shared<IntegerColumn>(field.bytes);
  column->look(field);
  return column;
}

}  // namespace npyfs
