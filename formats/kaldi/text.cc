// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

// A longer line, or word of a matrix, is none.
constexpr std::size_t kMostLineNbytes = std::size_t{64} << 20;
constexpr std::size_t kMostWordNbytes = 400;

std::optional<std::int32_t> parse_int32(std::string_view word) {
  if (word.starts_with('+')) {
    word.remove_prefix(1);
  }
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(value)
                                                                  : std::nullopt;
}

// inf, infinity and nan in any case, with a minus too, which Kaldi writes and cannot read.
std::optional<double> parse_non_finite(std::string_view word) {
  const bool negative = word.starts_with('-');
  std::string lower(word.substr(negative ? 1 : 0, 9));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    return std::nullopt;
  }
  return negative ? -value : value;
}

// Correctly rounded to T; nothing where the value is too large for it or the word is no number.
template <typename T>
std::optional<double> parse_finite(std::string_view word) {
  T value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    // Too small is no fault, and rounds to zero or a denormal.
    const std::string copy(word);
    value = sizeof(T) == 4 ? static_cast<T>(std::strtof(copy.c_str(), nullptr))
                           : static_cast<T>(std::strtod(copy.c_str(), nullptr));
  }
  return std::isinf(value) ? std::nullopt : std::optional<double>(value);
}

// A number as Kaldi's readers take it: no leading '+' or '.'.
std::optional<double> parse_number(std::string_view word, bool as_double) {
  if (word.empty()) {
    return std::nullopt;
  }
  const char first = word[word[0] == '-' && word.size() > 1 ? 1 : 0];
  if (first >= '0' && first <= '9') {
    return as_double ? parse_finite<double>(word) : parse_finite<float>(word);
  }
  return parse_non_finite(word);
}

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

// Reads a matrix or vector from its '[' to its ']'. `number` gets each of its words.
template <typename Input, typename Number>
class BracketReader {
 public:
  BracketReader(Input& input, const Number& number, const MakeFault& fault)
      : input_(input), number_(number), fault_(fault) {}

  void read(Object& object) {
    while (is_blank(input_.peek())) {
      input_.skip();
    }
    input_.skip();  // '['
    if (input_.peek() != ']' && !is_blank(input_.peek())) {
      throw fault_(fmt::format("{} follows '[', expected a blank", shown(input_.peek())));
    }
    for (int c = input_.peek(); c != ']'; c = input_.peek()) {
      if (c == '\n' || c == ';') {
        object.row_break = true;
        end_row();
        input_.skip();
      } else if (is_blank(c)) {
        input_.skip();
      } else {
        read_number(c);
      }
    }
    input_.skip();
    end_row();
    object.rows = rows_;
    object.cols = cols_;
  }

 private:
  static std::string shown(int c) {
    return c < 0 ? "the end of the file"
                 : fmt::format("'{}'", printable(std::string(1, static_cast<char>(c))));
  }

  void read_number(int c) {
    word_.clear();
    for (; c >= 0 && c != ';' && c != ']' && !is_blank(c); c = input_.peek()) {
      word_ += static_cast<char>(c);
      input_.skip();
      if (word_.size() > kMostWordNbytes) {
        break;
      }
    }
    if (c < 0) {
      throw fault_("the end of the file comes within brackets, expected ']'");
    }
    number_(word_);
    ++in_row_;
  }

  void end_row() {
    if (in_row_ == 0) {
      return;
    }
    if (rows_ > 0 && in_row_ != cols_) {
      throw fault_(fmt::format("row {} of the matrix has {} numbers, expected {} as in the first",
                               rows_, in_row_, cols_));
    }
    if (rows_ == std::numeric_limits<std::int32_t>::max()) {
      throw fault_("the matrix has more than 2^31 rows");
    }
    cols_ = in_row_;
    in_row_ = 0;
    ++rows_;
  }

  Input& input_;
  const Number& number_;
  const MakeFault& fault_;
  std::string word_;
  std::uint32_t rows_ = 0;
  std::uint32_t cols_ = 0;
  std::uint32_t in_row_ = 0;
};

Error not_a_number(const MakeFault& fault, std::string_view word) {
  return fault(
      fmt::format("'{}' stands for a number, expected one that begins with a digit or '-' "
                  "and is in range",
                  printable(word.substr(0, 40))));
}

// rows=R dim=D [ i v i v ] dim=D [ ] ...
class SparseReader {
 public:
  SparseReader(std::string_view text, const MakeFault& fault) : rest_(text), fault_(fault) {}

  // put(row, col, word) gets each element.
  template <typename Put>
  void read(Object& object, const Put& put) {
    const std::uint32_t rows = number_behind("rows=");
    std::uint32_t cols = 0;
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t dim = number_behind("dim=");
      if (row > 0 && dim != cols) {
        throw fault_(
            fmt::format("row {} of the sparse matrix has dim={}, expected {}", row, dim, cols));
      }
      cols = dim;
      if (next() != "[") {
        throw fault_("a row of the sparse matrix does not begin with '['");
      }
      read_row(row, cols, put);
    }
    if (std::uint64_t{rows} * cols > kMostDenseElements) {
      throw fault_(
          fmt::format("the sparse matrix is {} x {}, expected at most 2^30 elements (it is "
                      "shown dense)",
                      rows, cols));
    }
    object.rows = cols == 0 ? 0 : rows;
    object.cols = cols;
  }

 private:
  template <typename Put>
  void read_row(std::uint32_t row, std::uint32_t cols, const Put& put) {
    std::int64_t before = -1;
    for (std::string_view word = next(); word != "]"; word = next()) {
      const auto index = parse_int32(word);
      if (!index || *index <= before || static_cast<std::uint32_t>(*index) >= cols) {
        throw fault_(
            fmt::format("an index of the sparse matrix is '{}', expected rising ones below "
                        "{}",
                        printable(word.substr(0, 40)), cols));
      }
      before = *index;
      put(row, static_cast<std::uint32_t>(*index), next());
    }
  }

  std::string_view next() {
    const std::size_t begin = rest_.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) {
      throw fault_("the sparse matrix is cut off, expected ']'");
    }
    const std::size_t end = std::min(rest_.find_first_of(kBlanks, begin), rest_.size());
    const std::string_view word = rest_.substr(begin, end - begin);
    rest_.remove_prefix(end);
    return word;
  }

  std::uint32_t number_behind(std::string_view name) {
    constexpr std::int32_t kMost = 10'000'000;  // Kaldi's own limit for rows
    const std::string_view word = next();
    const auto number =
        word.starts_with(name) ? parse_int32(word.substr(name.size())) : std::nullopt;
    if (!number || *number < 0 || *number > kMost) {
      throw fault_(fmt::format("'{}' stands in a sparse matrix, expected {}0 to {}{}",
                               printable(word.substr(0, 40)), name, name, kMost));
    }
    return static_cast<std::uint32_t>(*number);
  }

  std::string_view rest_;
  const MakeFault& fault_;
};

// The rest of the line, without its end.
std::string read_line(Cursor& cursor) {
  std::string line;
  for (int c = cursor.peek(); c >= 0 && c != '\n'; c = cursor.peek()) {
    line += static_cast<char>(c);
    cursor.skip();
    if (line.size() > kMostLineNbytes) {
      throw Error(
          ErrorKind::kTooLarge,
          cursor.fault(cursor.offset(), "the line is longer than 64 MiB, expected less").what());
    }
  }
  return line;
}

// Whether another bracket stands on the same line: then these are the lists of a posterior.
bool bracket_follows(Cursor& cursor) {
  while (cursor.peek() == ' ' || cursor.peek() == '\t') {
    cursor.skip();
  }
  return cursor.peek() == '[';
}

void take_line(Cursor& cursor, Object& object, LineTraits& traits) {
  const std::string line = read_line(cursor);
  traits.note(line);
  object.kind = ObjectKind::kLine;
  for_each_word(line, [&](std::string_view) { ++object.rows; });
  object.cols = static_cast<std::uint32_t>(utf8_length(join_words(line)));
}

}  // namespace

void LineTraits::note(std::string_view line) {
  std::uint64_t words = 0;
  std::string_view last;
  for_each_word(line, [&](std::string_view word) {
    ++words;
    last = word;
    lists = lists || word == ";";
    integers = integers && (word == ";" || parse_int32(word));
    numbers = numbers && (word == ";" || parse_number(word, false));
  });
  ++lines;
  binary = binary || line.find('\0') != std::string_view::npos;
  single = single && words == 1;
  booleans = booleans && words == 1 && (last == "T" || last == "F");
  terminated = terminated && (words == 0 || last == ";");
}

std::string join_words(std::string_view line) {
  std::string joined;
  for_each_word(line, [&](std::string_view word) {
    joined += joined.empty() ? "" : " ";
    joined += word;
  });
  return joined;
}

Object parse_text_object(Cursor& cursor, bool lines_only, LineTraits& traits) {
  Object object;
  object.text = true;
  object.offset = cursor.offset();
  const MakeFault fault = [&](const std::string& text) {
    return cursor.fault(cursor.offset(), text);
  };
  while (!lines_only && (cursor.peek() == ' ' || cursor.peek() == '\t')) {
    cursor.skip();
  }
  const std::uint64_t begin = cursor.offset();
  const auto head = cursor.look(5);
  const std::string_view word(reinterpret_cast<const char*>(head.data()), head.size());
  if (!lines_only && word == "rows=") {
    const std::string line = read_line(cursor);
    object.kind = ObjectKind::kSparse;
    SparseReader(line, fault).read(object, [&](std::uint32_t, std::uint32_t, std::string_view w) {
      if (!parse_number(w, true)) {
        throw not_a_number(fault, w);
      }
    });
  } else if (!lines_only && word.starts_with('[')) {
    const auto check = [&](const std::string& number) {
      if (!parse_number(number, true)) {
        throw not_a_number(fault, number);
      }
    };
    BracketReader(cursor, check, fault).read(object);
    object.kind = ObjectKind::kFloatVector;
    object.nbytes = cursor.offset() - object.offset;
    const std::uint64_t end = cursor.offset();
    if (!object.row_break && bracket_follows(cursor)) {
      cursor.seek(begin);
      object.rows = object.cols = 0;
      take_line(cursor, object, traits);
      traits.bracketed = true;
    } else {
      cursor.seek(end);
    }
  } else {
    cursor.seek(object.offset);
    take_line(cursor, object, traits);
  }
  object.nbytes = cursor.offset() - object.offset;
  return object;
}

namespace {

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

ListValues parse_line(ObjectKind kind, std::string_view line, bool as_double,
                      const MakeFault& fault) {
  return LineParser(kind, as_double, fault).parse(line);
}

std::vector<double> parse_numbers(const Object& object, std::string_view text, bool as_double,
                                  const MakeFault& fault) {
  const auto to_number = [&](std::string_view word) {
    const auto value = parse_number(word, as_double);
    if (!value) {
      throw not_a_number(fault, word);
    }
    return *value;
  };
  std::vector<double> numbers;
  Object parsed;
  if (object.kind == ObjectKind::kSparse) {
    numbers.resize(std::uint64_t{object.rows} * object.cols);
    SparseReader(text, fault)
        .read(parsed, [&](std::uint32_t row, std::uint32_t col, std::string_view word) {
          const std::uint64_t at = std::uint64_t{row} * object.cols + col;
          if (at < numbers.size()) {
            numbers[at] = to_number(word);
          }
        });
  } else {
    MemoryInput input(text);
    const auto add = [&](const std::string& word) { numbers.push_back(to_number(word)); };
    BracketReader(input, add, fault).read(parsed);
  }
  const bool vector = is_vector(object.kind);
  if (vector ? numbers.size() != object.rows
             : parsed.rows != object.rows || parsed.cols != object.cols) {
    throw fault("the object is not what it was when it was opened; mount again");
  }
  return numbers;
}

}  // namespace npyfs
