// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/text.h"

#include <algorithm>

#include "formats/bytes/utf8.h"
#include "formats/kaldi/brackets.h"
#include "formats/kaldi/number.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostTextNbytes = std::size_t{64} << 20;

// The rest of the line, without its end.
std::string read_line(Cursor& cursor) {
  std::string line;
  for (int c = cursor.peek(); c >= 0 && c != '\n'; c = cursor.peek()) {
    line += static_cast<char>(c);
    cursor.skip();
    if (line.size() > kMostTextNbytes) {
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

// "rows=R" and then a row, or nothing where there are none.
bool begins_sparse(std::string_view text) {
  constexpr std::string_view kRows = "rows=";
  if (!text.starts_with(kRows)) {
    return false;
  }
  std::size_t at = 0;
  const std::string_view rows = next_word(text, at).substr(kRows.size());
  const std::string_view next =
      text.substr(std::min(text.find_first_not_of(" \t", at), text.size()));
  return parse_int32(rows) &&
         (next.empty() || next.starts_with("dim=") || next[0] == '\n' || next[0] == '\r');
}

// '[' and a number or blank; "[noise]" is a word of a transcript.
bool begins_brackets(std::string_view text) {
  if (!text.starts_with('[')) {
    return false;
  }
  const int next = text.size() > 1 ? static_cast<unsigned char>(text[1]) : ' ';
  return is_blank(next) || next == ']' || next == '-' || next == '.' ||
         (next >= '0' && next <= '9');
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

void parse_text_object(Cursor& cursor, bool lines_only, LineTraits& traits, Object& object) {
  object = {};
  object.text = true;
  object.offset = cursor.offset();
  const MakeFault fault = [&](const std::string& text) {
    return cursor.fault(cursor.offset(), text);
  };
  while (!lines_only && (cursor.peek() == ' ' || cursor.peek() == '\t')) {
    cursor.skip();
  }
  const std::uint64_t begin = cursor.offset();
  const auto head = cursor.look(40);
  const std::string_view word(reinterpret_cast<const char*>(head.data()), head.size());
  if (!lines_only && begins_sparse(word)) {
    object.kind = ObjectKind::kSparse;
    object.began = true;
    const std::string line = read_line(cursor);
    SparseReader(line, fault).read(object, [&](std::uint32_t, std::uint32_t, std::string_view w) {
      if (!parse_number(w, true)) {
        throw not_a_number(fault, w);
      }
    });
  } else if (!lines_only && begins_brackets(word)) {
    const auto check = [&](const std::string& number) {
      if (!parse_number(number, true)) {
        throw not_a_number(fault, number);
      }
    };
    object.kind = ObjectKind::kFloatVector;
    BracketReader(cursor, check, fault).read(object);
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
}

}  // namespace npyfs
