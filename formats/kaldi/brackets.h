// SPDX-License-Identifier: Apache-2.0
//
// The grammar of matrices and vectors in text, for those who measure them when the table is opened
// and for those who decode them later.

#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "formats/bytes/words.h"
#include "formats/kaldi/number.h"
#include "formats/kaldi/object.h"
#include "formats/kaldi/text.h"

namespace npyfs {

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
    object.began = true;
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
  static constexpr std::size_t kMostWordNbytes = 400;

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
        throw fault_(
            fmt::format("a number has more than {} characters, expected fewer", kMostWordNbytes));
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
          fmt::format("the sparse matrix is {} x {}, expected at most 2^26 elements (it is "
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
    std::size_t end = 0;
    const std::string_view word = next_word(rest_, end);
    if (word.empty()) {
      throw fault_("the sparse matrix is cut off, expected ']'");
    }
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

}  // namespace npyfs
