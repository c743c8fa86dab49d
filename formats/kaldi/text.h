// SPDX-License-Identifier: Apache-2.0
//
// Objects in text form.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/words.h"
#include "formats/kaldi/cursor.h"
#include "formats/kaldi/fault.h"
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

// The words, joined by one blank each.
std::string join_words(std::string_view line);

// Parses the text object at the cursor and moves behind it: a matrix or vector in brackets, a
// sparse matrix, else what is left of the line (the line's end stays). `lines_only`: brackets mean
// nothing. Notes lines in `traits`. Throws kCorrupt, kTooLarge; `object` is then as far as it was
// understood.
void parse_text_object(Cursor& cursor, bool lines_only, LineTraits& traits, Object& object);

// A list of numbers as a line of text has it, or the nested lists of a binary object.
struct ListValues {
  std::vector<std::int32_t> integers;
  std::vector<double> numbers;       // float32 values unless `as_double`
  std::vector<std::int32_t> counts;  // elements of each inner list
};

// Parses a line of text as an object of `kind` (kInt32 to kPosterior). What is no such line throws
// kCorrupt, placed by `fault`.
ListValues parse_text_values(ObjectKind kind, std::string_view line, bool as_double,
                             const MakeFault& fault);

// Writes the numbers of a matrix or vector in brackets to `out`, row by row, float64 with
// `as_double`, else float32; a sparse one is filled with zeroes. Throws the `fault` where they are
// not those that were there when the table was opened.
void decode_text(const Object& object, std::string_view text, bool as_double,
                 std::span<std::byte> out, const MakeFault& fault);

}  // namespace npyfs
