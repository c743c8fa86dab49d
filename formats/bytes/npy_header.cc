// SPDX-License-Identifier: Apache-2.0
//
// The text is a Python literal that numpy hands to ast.literal_eval. Here a reader that knows only
// what may stand in a header takes it apart; nothing is evaluated.

#include "formats/bytes/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/bytes/text_view.h"
#include "formats/bytes/utf8.h"

namespace npyfs {
namespace {

constexpr std::string_view kMagic("\x93NUMPY");
constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{16} << 20;
// numpy 2 has arrays of up to 64 axes, 1.x of up to 32.
constexpr std::size_t kMaxRank = 64;
// Deeper than any writer nests; Python's own parser gives up near 100.
constexpr int kMaxNesting = 64;
constexpr std::uint32_t kMaxItemsize = std::numeric_limits<std::int32_t>::max();

// Marks a code point above U+00FF that the source wrote as an escape. Python escapes what is not
// printable, which depends on its Unicode version: keeping the source's choice needs no table.
constexpr char32_t kWasEscaped = 0x8000'0000;

// numpy leaves room for the growing axis to be rewritten in place with any number of digits.
constexpr std::size_t kGrowthDigits = 21;

// The number of bytes before the text: 10 in version 1.0, 12 after.
std::size_t prefix_nbytes(int major) { return major == 1 ? 10 : 12; }

// `utf8` in Latin-1; nothing where a character is beyond it.
std::optional<std::string> to_latin1(std::string_view utf8) {
  std::string out;
  for (std::size_t at = 0; at < utf8.size();) {
    const auto point = next_code_point(utf8, at);
    if (!point || *point > 0xff) {
      return std::nullopt;
    }
    out += static_cast<char>(*point);
  }
  return out;
}

// A string as Python's repr prints it.
std::string python_repr(std::u32string_view text) {
  const bool has_single = text.find(U'\'') != std::u32string_view::npos;
  const bool has_double = text.find(U'"') != std::u32string_view::npos;
  const char32_t quote = has_single && !has_double ? U'"' : U'\'';
  std::string out(1, static_cast<char>(quote));
  for (const char32_t marked : text) {
    const char32_t point = marked & ~kWasEscaped;
    if (point == quote || point == U'\\') {
      out += '\\';
      out += static_cast<char>(point);
    } else if (point == U'\n') {
      out += "\\n";
    } else if (point == U'\r') {
      out += "\\r";
    } else if (point == U'\t') {
      out += "\\t";
    } else if (point < 0x20 || (point >= 0x7f && point <= 0xa0) || point == 0xad) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(point));
    } else if (marked == point) {
      append_utf8(out, point);
    } else {
      out += point > 0xffff ? fmt::format("\\U{:08x}", static_cast<std::uint32_t>(point))
                            : fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point));
    }
  }
  return out + static_cast<char>(quote);
}

// Takes the header's text apart from left to right. Every read_ function skips blanks before it,
// leaves the place behind what it read, and throws an Error with that place.
class HeaderText {
 public:
  // `offset` is where `text` begins in the file `name`; `utf8` is false for Latin-1.
  HeaderText(std::string_view text, bool utf8, const std::string& name, std::uint64_t offset)
      : text_(text), utf8_(utf8), name_(name), offset_(offset) {}

  void read_header(NpyHeader& header);

 private:
  [[noreturn]] void fail(std::size_t at, std::string_view what) const {
    throw corrupt_at(name_, offset_ + at, fmt::format("npy header {}", what));
  }
  [[noreturn]] void fail_expected(std::string_view expected) const;

  char peek();
  bool accept(char c);
  void expect(char c);
  // The comma before a next item; false at the end of the sequence, which `close` ends.
  bool next_item(char close);

  std::u32string read_string();
  char32_t read_escape(char letter);
  char32_t read_character();
  std::uint64_t read_integer();
  bool read_boolean();
  // `alone` allows a number without parentheses for a shape of one axis.
  Shape read_shape(bool alone);
  DType read_dtype(int depth);
  DType read_simple_dtype();
  DType read_structured_dtype(int depth);
  // A structured type's field, added to `type`; `names` are those taken.
  void read_field(DType& type, std::set<std::u32string>& names, int depth);
  // `type` becomes an array of it with the shape that is read; the shape's text comes back, empty
  // for "()", which numpy drops.
  std::string read_subarray(DType& type);

  std::string_view text_;
  bool utf8_;
  const std::string& name_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
};

char HeaderText::peek() {
  while (at_ < text_.size() &&
         std::string_view(" \t\n\r\f").find(text_[at_]) != std::string::npos) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

void HeaderText::fail_expected(std::string_view expected) const {
  if (at_ == text_.size()) {
    fail(at_, fmt::format("ends, expected {}", expected));
  }
  const auto byte = static_cast<unsigned char>(text_[at_]);
  fail(at_, byte > 0x20 && byte < 0x7f
                ? fmt::format("has '{}', expected {}", text_[at_], expected)
                : fmt::format("has byte 0x{:02x}, expected {}", byte, expected));
}

bool HeaderText::accept(char c) {
  // peek() answers NUL at the end; no `c` is NUL.
  const bool found = peek() == c;
  at_ += found ? 1 : 0;
  return found;
}

void HeaderText::expect(char c) {
  if (!accept(c)) {
    fail_expected(fmt::format("'{}'", c));
  }
}

bool HeaderText::next_item(char close) {
  const bool comma = accept(',');
  if (accept(close)) {
    return false;
  }
  if (!comma) {
    fail_expected(fmt::format("',' or '{}'", close));
  }
  return true;
}

char32_t HeaderText::read_character() {
  const std::size_t begin = at_;
  if (!utf8_) {
    return static_cast<unsigned char>(text_[at_++]);
  }
  const auto point = next_code_point(text_, at_);
  if (!point || is_surrogate(*point)) {
    fail(begin, "is not UTF-8, expected it in version 3.0");
  }
  return *point;
}

// What stands for a backslash and `letter`, which were read.
char32_t HeaderText::read_escape(char letter) {
  std::size_t digits = 0;
  switch (letter) {
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 't':
      return U'\t';
    case '\\':
    case '\'':
    case '"':
      return static_cast<unsigned char>(letter);
    case 'x':
      digits = 2;
      break;
    case 'u':
      digits = 4;
      break;
    case 'U':
      digits = 8;
      break;
    default:
      fail(at_ - 1, "has an unknown escape in a string, expected one that Python's repr writes");
  }
  char32_t point = 0;
  for (; digits > 0; --digits, ++at_) {
    const std::size_t digit = at_ < text_.size()
                                  ? std::string_view("0123456789abcdefABCDEF").find(text_[at_])
                                  : std::string_view::npos;
    if (digit == std::string_view::npos) {
      fail_expected("a hexadecimal digit");
    }
    point = point << 4 | static_cast<char32_t>(digit < 16 ? digit : digit - 6);
  }
  if (point > 0x10ffff) {
    fail(at_, "has an escaped character beyond U+10FFFF");
  }
  return point > 0xff ? point | kWasEscaped : point;
}

std::u32string HeaderText::read_string() {
  const char quote = peek();
  if (quote != '\'' && quote != '"') {
    fail_expected("a string");
  }
  ++at_;
  std::u32string out;
  while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      at_ += 2;
      out += read_escape(text_[at_ - 1]);
    } else {
      out += read_character();
    }
  }
  if (at_ == text_.size() || text_[at_] != quote) {
    fail_expected("the end of a string");
  }
  ++at_;
  return out;
}

std::uint64_t HeaderText::read_integer() {
  const char first = peek();
  const std::size_t begin = at_;
  if (first == '-') {
    fail(begin, "has a negative length, expected 0 or more");
  }
  if (first < '0' || first > '9') {
    fail_expected("a number");
  }
  std::uint64_t number = 0;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_add_overflow(number, digit, &number) || number >> 63 != 0) {
      fail(begin, "has a length beyond 63 bits");
    }
  }
  if (first == '0' && at_ > begin + 1) {
    fail(begin, "has a number with a leading zero, which Python 2 takes for octal");
  }
  // Python 2 on Windows wrote its long integers with a suffix.
  at_ += at_ < text_.size() && text_[at_] == 'L' ? 1 : 0;
  return number;
}

bool HeaderText::read_boolean() {
  peek();
  for (const bool value : {true, false}) {
    const std::string_view word = value ? "True" : "False";
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      return value;
    }
  }
  fail_expected("True or False");
}

Shape HeaderText::read_shape(bool alone) {
  const char first = peek();
  const std::size_t begin = at_;
  if (alone && first >= '0' && first <= '9') {
    return {read_integer()};
  }
  expect('(');
  if (accept(')')) {
    return {};
  }
  Shape shape;
  do {
    shape.push_back(read_integer());
    if (shape.size() == 1 && peek() == ')') {
      fail(at_, "has a number where a tuple is expected; a shape of one axis has a comma");
    }
    if (shape.size() > kMaxRank) {
      fail(begin, fmt::format("has a shape of more than {} axes", kMaxRank));
    }
  } while (next_item(')'));
  return shape;
}

DType HeaderText::read_simple_dtype() {
  peek();
  const std::size_t begin = at_;
  const std::string quoted = python_repr(read_string());
  std::string_view code(quoted);
  code.remove_prefix(1);
  code.remove_suffix(1);
  if (auto type = DType::from_user(code)) {
    return *std::move(type);
  }
  const std::string_view bare = code.substr(std::min(code.find_first_not_of("<>=|"), code.size()));
  if (bare == "O" || bare == "O4" || bare == "O8" || bare == "object") {
    throw file_error(ErrorKind::kUnsupported, name_,
                     fmt::format("at byte {}: npy dtype is '{}', Python objects, expected numbers, "
                                 "text or bytes; objects would have to be unpickled",
                                 offset_ + begin, code));
  }
  fail(begin, fmt::format("has dtype {}, expected one that numpy writes", quoted.substr(0, 60)));
}

std::string HeaderText::read_subarray(DType& type) {
  peek();
  const std::size_t begin = at_;
  const Shape shape = read_shape(true);
  const auto count = element_count(shape);
  std::uint64_t itemsize = 0;
  if (!count || __builtin_mul_overflow(*count, type.itemsize, &itemsize) ||
      itemsize > kMaxItemsize) {
    fail(begin, "has a field of more than 2 GiB");
  }
  type.itemsize = static_cast<std::uint32_t>(itemsize);
  return shape.empty() ? "" : shape_text(shape);
}

void HeaderText::read_field(DType& type, std::set<std::u32string>& names, int depth) {
  expect('(');
  const std::size_t begin = at_;
  const auto read_name = [&] {
    std::u32string name = read_string();
    std::string text = python_repr(name);
    // The empty name is padding, which may recur.
    if (!name.empty() && !names.insert(std::move(name)).second) {
      fail(begin, fmt::format("has the field {} twice, expected distinct names", text));
    }
    return text;
  };
  std::string name;
  if (accept('(')) {
    const std::string title = read_name();
    expect(',');
    name = fmt::format("({}, {})", title, read_name());
    accept(',');
    expect(')');
  } else {
    name = read_name();
  }
  expect(',');
  DType field = read_dtype(depth);
  std::string shape;
  if (next_item(')')) {
    shape = read_subarray(field);
    accept(',');
    expect(')');
  }
  if (field.itemsize > kMaxItemsize - type.itemsize) {
    fail(begin, "has a structured type of more than 2 GiB");
  }
  type.itemsize += field.itemsize;
  type.descr += fmt::format("{}({}, {}{}{})", type.descr.size() > 1 ? ", " : "", name, field.descr,
                            shape.empty() ? "" : ", ", shape);
}

DType HeaderText::read_structured_dtype(int depth) {
  if (depth == kMaxNesting) {
    fail(at_, fmt::format("nests types deeper than {}", kMaxNesting));
  }
  expect('[');
  DType type{"[", 0, 'V'};
  std::set<std::u32string> names;
  if (!accept(']')) {
    do {
      read_field(type, names, depth + 1);
    } while (next_item(']'));
  }
  type.descr += ']';
  return type;
}

DType HeaderText::read_dtype(int depth) {
  switch (peek()) {
    case '[':
      return read_structured_dtype(depth);
    case '(': {
      // An array of arrays, as a field's type only: ('<f4', (2,)).
      if (depth == 0 || depth == kMaxNesting) {
        fail_expected("a string or a list");
      }
      expect('(');
      DType type = read_dtype(depth + 1);
      expect(',');
      const std::string shape = read_subarray(type);
      accept(',');
      expect(')');
      type.descr = fmt::format("({}, {})", type.descr, shape.empty() ? "()" : shape);
      return type;
    }
    default:
      return read_simple_dtype();
  }
}

void HeaderText::read_header(NpyHeader& header) {
  bool have_descr = false;
  bool have_order = false;
  bool have_shape = false;
  expect('{');
  if (!accept('}')) {
    do {
      peek();
      const std::size_t begin = at_;
      const std::u32string key = read_string();
      const bool known = key == U"descr" || key == U"fortran_order" || key == U"shape";
      bool& have = key == U"descr" ? have_descr : key == U"shape" ? have_shape : have_order;
      if (!known || have) {
        fail(begin, fmt::format("has the key {}{}, expected descr, fortran_order and shape",
                                python_repr(key).substr(0, 60), known ? " twice" : ""));
      }
      have = true;
      expect(':');
      if (key == U"descr") {
        header.dtype = read_dtype(0);
      } else if (key == U"shape") {
        header.shape = read_shape(false);
      } else {
        header.fortran_order = read_boolean();
      }
    } while (next_item('}'));
  }
  if (!have_descr || !have_order || !have_shape) {
    fail(at_, fmt::format("has no {}, expected descr, fortran_order and shape",
                          !have_descr   ? "descr"
                          : !have_shape ? "shape"
                                        : "fortran_order"));
  }
  peek();
  if (at_ != text_.size()) {
    fail_expected("nothing after the '}'");
  }
}

// Of the bytes that begin a .npy file: where its text begins and how long that is.
struct Preamble {
  int major = 0;
  std::size_t prefix = 0;
  std::uint64_t text_nbytes = 0;
};

std::optional<Preamble> read_preamble(std::span<const std::byte> bytes) {
  if (!is_npy(bytes) || bytes.size() < 8) {
    return std::nullopt;
  }
  const int major = std::to_integer<int>(bytes[6]);
  const std::size_t prefix = prefix_nbytes(major);
  if (bytes.size() < prefix) {
    return std::nullopt;
  }
  const std::byte* const length = bytes.data() + 8;
  return Preamble{major, prefix,
                  major == 1 ? load_le<std::uint16_t>(length) : load_le<std::uint32_t>(length)};
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c == '\'' || c == '\\' ? "\\" : "";
      out += c;
    }
  }
  return out + "'";
}

std::string print_npy_header(const DType& dtype, const Shape& shape, bool fortran_order,
                             std::uint64_t align) {
  std::string text = fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", dtype.descr,
                                 fortran_order ? "True" : "False", shape_text(shape));
  if (!shape.empty()) {
    const auto digits = fmt::formatted_size("{}", fortran_order ? shape.back() : shape.front());
    text.append(kGrowthDigits - digits, ' ');
  }
  const auto latin1 = to_latin1(text);
  text = latin1.value_or(text);

  // The final newline counts, and an aligned text is padded by a whole `align`, as numpy does it.
  const auto text_nbytes = [&](int major) {
    const std::uint64_t bare = text.size() + 1;
    return bare + align - (prefix_nbytes(major) + bare) % align;
  };
  const int major = !latin1 ? 3 : text_nbytes(1) > 0xffff ? 2 : 1;
  const std::uint64_t nbytes = text_nbytes(major);

  std::string out(kMagic);
  out += static_cast<char>(major);
  out += '\0';
  for (std::size_t i = 0; i < prefix_nbytes(major) - 8; ++i) {
    out += static_cast<char>(nbytes >> 8 * i & 0xff);
  }
  out += text;
  out.append(nbytes - text.size() - 1, ' ');
  return out + '\n';
}

bool is_npy(std::span<const std::byte> bytes) { return as_text(bytes).starts_with(kMagic); }

std::optional<std::uint64_t> npy_header_nbytes(std::span<const std::byte> first_bytes) {
  const auto preamble = read_preamble(first_bytes);
  if (!preamble) {
    return std::nullopt;
  }
  if (preamble->major < 1 || preamble->major > 3) {
    return preamble->prefix;
  }
  return std::min(preamble->prefix + preamble->text_nbytes, kMaxHeaderBytes);
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name,
                           std::uint64_t base_offset) {
  const auto preamble = read_preamble(bytes);
  if (!preamble) {
    throw corrupt_at(name, base_offset, "these bytes do not begin as a .npy file does");
  }
  const auto [major, prefix, text_nbytes] = *preamble;
  const int minor = std::to_integer<int>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw corrupt_at(name, base_offset + 6,
                     fmt::format("npy version is {}.{}, expected 1.0, 2.0 or 3.0", major, minor));
  }
  if (prefix + text_nbytes > kMaxHeaderBytes) {
    throw corrupt_at(
        name, base_offset + 8,
        fmt::format("npy header length is {}, expected less than 16 MiB", text_nbytes));
  }
  if (text_nbytes > bytes.size() - prefix) {
    throw corrupt_at(name, base_offset + 8,
                     fmt::format("npy header length is {}, expected at most the {} bytes that "
                                 "follow; the file is cut",
                                 text_nbytes, bytes.size() - prefix));
  }
  NpyHeader header;
  header.nbytes = prefix + text_nbytes;
  HeaderText(as_text(bytes).substr(prefix, text_nbytes), major == 3, name, base_offset + prefix)
      .read_header(header);
  const auto count = element_count(header.shape);
  std::uint64_t data_nbytes = 0;
  if (!count || __builtin_mul_overflow(*count, header.dtype.itemsize, &data_nbytes) ||
      data_nbytes >> 63 != 0) {
    throw corrupt_at(name, base_offset,
                     fmt::format("npy shape is {} of {} bytes each, expected a size of 63 bits",
                                 shape_text(header.shape), header.dtype.itemsize));
  }
  return header;
}

}  // namespace npyfs
