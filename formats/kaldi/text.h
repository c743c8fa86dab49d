// SPDX-License-Identifier: Apache-2.0
//
// Objects in text form.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/kaldi/cursor.h"
#include "formats/kaldi/object.h"

namespace npyfs {

// What the lines of a table have in common so far.
struct LineTraits {
  std::uint64_t lines = 0;
  bool integers = true;    // every word is a 32-bit integer or ';'
  bool numbers = true;     // every word is a number or ';'
  bool booleans = true;    // every line is T or F
  bool single = true;      // every line has one word
  bool lists = false;      // some line has a ';'
  bool terminated = true;  // every line with words ends with ';'
  bool binary = false;     // some line has a zero byte
  bool bracketed = false;  // some line is a posterior: several brackets

  void note(std::string_view line);
};

// Calls word(std::string_view) for each word of a line.
template <typename Take>
void for_each_word(std::string_view line, const Take& word) {
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    word(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
}

// The words, joined by one blank each.
std::string join_words(std::string_view line);

// Parses the text object at the cursor and moves behind it: a matrix or vector in brackets, a
// sparse matrix, else what is left of the line (the line's end stays). `lines_only`: brackets mean
// nothing. Notes lines in `traits`. Throws kCorrupt, kTooLarge.
Object parse_text_object(Cursor& cursor, bool lines_only, LineTraits& traits);

// A list of numbers as a line of text has it, or the nested lists of a binary object.
struct ListValues {
  std::vector<std::int32_t> integers;
  std::vector<double> numbers;       // float32 values unless `as_double`
  std::vector<std::int32_t> counts;  // elements of each inner list
};

// Parses a line of text as an object of `kind` (kInt32 to kPosterior). What is no such line throws
// kCorrupt, placed by `fault`, which makes an Error of "<what> is <found>, expected <rule>".
using MakeFault = std::function<Error(const std::string& text)>;
ListValues parse_line(ObjectKind kind, std::string_view line, bool as_double,
                      const MakeFault& fault);

// The numbers of a matrix or vector in brackets, row by row; a sparse one is filled with zeroes.
std::vector<double> parse_numbers(const Object& object, std::string_view text, bool as_double,
                                  const MakeFault& fault);

}  // namespace npyfs
