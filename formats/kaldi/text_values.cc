// SPDX-License-Identifier: Apache-2.0
//
// The numbers in text objects.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "formats/kaldi/brackets.h"
#include "formats/kaldi/number.h"
#include "formats/kaldi/text.h"

namespace npyfs {

namespace {

// Bytes in memory, read as a Cursor is.
class MemoryInput {
 public:
  explicit MemoryInput(std::string_view text) : text_(text) {}
  int peek() const { return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : -1; }
  void skip() { ++at_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// Words become lists: ';' between or behind, or brackets around them.
class LineParser {
 public:
  LineParser(ObjectKind kind, bool as_double, const MakeFault& fault)
      : kind_(kind), as_double_(as_double), fault_(fault) {}

  ListValues parse(std::string_view line) {
    for_each_word(line, [&](std::string_view word) { take(word); });
    finish();
    return std::move(values_);
  }

 private:
  void take(std::string_view word) {
    if (kind_ == ObjectKind::kPosterior && (word == "[" || word == "]")) {
      take_bracket(word == "[");
    } else if (word == ";" && (is_pairs() || kind_ == ObjectKind::kInt32Vectors)) {
      end_list(word);
    } else {
      take_number(word);
      ++in_list_;
      ++words_;
    }
  }

  bool is_pairs() const {
    return kind_ == ObjectKind::kInt32Pairs || kind_ == ObjectKind::kFloatPairs;
  }

  void take_number(std::string_view word) {
    const bool integer = kind_ == ObjectKind::kInt32 || kind_ == ObjectKind::kInt32Vector ||
                         kind_ == ObjectKind::kInt32Vectors || kind_ == ObjectKind::kInt32Pairs ||
                         (kind_ == ObjectKind::kPosterior && in_list_ % 2 == 0);
    if (kind_ == ObjectKind::kPosterior && !open_) {
      throw fault_(fmt::format("'{}' stands outside of brackets, expected '['", shown(word)));
    }
    if (kind_ == ObjectKind::kBool) {
      if (word != "T" && word != "F") {
        throw fault_(fmt::format("'{}' stands for a truth value, expected T or F", shown(word)));
      }
      values_.integers.push_back(word == "T" ? 1 : 0);
    } else if (integer) {
      const auto value = parse_int32(word);
      if (!value) {
        throw fault_(
            fmt::format("'{}' stands for an integer, expected one of 32 bits", shown(word)));
      }
      values_.integers.push_back(*value);
    } else {
      const auto value = parse_number(word, as_double_);
      if (!value) {
        throw not_a_number(fault_, word);
      }
      values_.numbers.push_back(*value);
    }
  }

  void take_bracket(bool opens) {
    if (opens == open_) {
      throw fault_("brackets are not matched, expected '[ id weight id weight ]'");
    }
    open_ = opens;
    if (!opens) {
      if (in_list_ % 2 != 0) {
        throw fault_("an id has no weight, expected '[ id weight id weight ]'");
      }
      values_.counts.push_back(static_cast<std::int32_t>(in_list_ / 2));
    }
    in_list_ = 0;
  }

  void end_list(std::string_view word) {
    if (is_pairs() && in_list_ != 2) {
      throw fault_(fmt::format("a pair has {} numbers before '{}', expected 2", in_list_, word));
    }
    values_.counts.push_back(static_cast<std::int32_t>(in_list_));
    in_list_ = 0;
  }

  void finish() {
    const bool scalar = kind_ <= ObjectKind::kBool;
    if (scalar && words_ != 1) {
      throw fault_(fmt::format("the line has {} words, expected 1", words_));
    }
    if (open_ || (kind_ == ObjectKind::kInt32Vectors && in_list_ > 0)) {
      throw fault_(fmt::format("the last list does not end, expected '{}'", open_ ? "]" : ";"));
    }
    if (is_pairs() && in_list_ > 0) {
      end_list("the end");
    }
  }

  static std::string shown(std::string_view word) { return printable(word.substr(0, 40)); }

  ObjectKind kind_;
  bool as_double_;
  const MakeFault& fault_;
  ListValues values_;
  std::uint64_t in_list_ = 0;
  std::uint64_t words_ = 0;
  bool open_ = false;
};

}  // namespace

ListValues parse_text_values(ObjectKind kind, std::string_view line, bool as_double,
                             const MakeFault& fault) {
  return LineParser(kind, as_double, fault).parse(line);
}

void decode_text(const Object& object, std::string_view text, bool as_double,
                 std::span<std::byte> out, const MakeFault& fault) {
  const std::size_t element = as_double ? sizeof(double) : sizeof(float);
  const auto changed = [&] {
    return fault("the object is not what it was when it was opened; mount again");
  };
  const auto put = [&](std::uint64_t at, std::string_view word) {
    const auto value = parse_number(word, as_double);
    if (!value) {
      throw not_a_number(fault, word);
    }
    if (at >= out.size() / element) {
      throw changed();
    }
    if (as_double) {
      std::memcpy(out.data() + at * element, &*value, element);
    } else {
      const auto single = static_cast<float>(*value);
      std::memcpy(out.data() + at * element, &single, element);
    }
  };
  Object parsed;
  std::uint64_t count = 0;
  if (object.kind == ObjectKind::kSparse) {
    std::memset(out.data(), 0, out.size());
    SparseReader(text, fault)
        .read(parsed, [&](std::uint32_t row, std::uint32_t col, std::string_view word) {
          put(std::uint64_t{row} * object.cols + col, word);
        });
  } else {
    MemoryInput input(text);
    const auto add = [&](const std::string& word) { put(count++, word); };
    BracketReader(input, add, fault).read(parsed);
  }
  if (is_vector(object.kind) ? count != object.rows
                             : parsed.rows != object.rows || parsed.cols != object.cols) {
    throw changed();
  }
}

}  // namespace npyfs
