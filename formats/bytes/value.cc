// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/value.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include "formats/bytes/dtype.h"
#include "formats/bytes/error.h"
#include "formats/bytes/npy_header.h"
#include "formats/bytes/python_json.h"
#include "formats/bytes/utf8.h"

namespace npyfs {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kMaxDepth = 512;
constexpr char32_t kReplacement = 0xfffd;

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

// `text` with U+FFFD for what is not UTF-8; surrogates, which Python's strings may hold, are
// replaced too where `replace_surrogates`.
std::string valid_utf8(std::string_view text, bool replace_surrogates) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_code_point(text, at);
    append_utf8(out,
                !point || (replace_surrogates && is_surrogate(*point)) ? kReplacement : *point);
  }
  return out;
}

// ---- JSON in

double parse_double(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  // Too large or too small: strtod knows which, from_chars does not say.
  return error == std::errc() ? number : std::strtod(std::string(text).c_str(), nullptr);
}

Value parse_number(std::string_view text) {
  // Also the N and I of NaN and Infinity.
  if (text.find_first_of(".eENI") != std::string_view::npos) {
    return {parse_double(text)};
  }
  std::int64_t number = 0;
  if (std::from_chars(text.begin(), text.end(), number).ec == std::errc()) {
    return {number};
  }
  std::uint64_t large = 0;
  if (text.front() != '-' && std::from_chars(text.begin(), text.end(), large).ec == std::errc()) {
    return {large};
  }
  return {BigInt{std::string(text)}};
}

// The last of equal keys wins, in the place of the first.
void merge_equal_keys(Dict& dict) {
  std::unordered_map<std::string_view, std::size_t> places;
  std::vector<std::size_t> place_of;
  for (const auto& entry : dict) {
    place_of.push_back(places.try_emplace(entry.name, places.size()).first->second);
  }
  const std::size_t distinct = places.size();
  if (distinct == dict.size()) {
    return;
  }
  Dict merged(distinct);
  for (std::size_t i = 0; i < dict.size(); ++i) {
    merged[place_of[i]] = std::move(dict[i]);
  }
  dict = std::move(merged);
}

// Takes RapidJSON's events, whose names these are. False stops the reader.
class Builder {
 public:
  bool Null() { return add({}); }
  bool Bool(bool value) { return add({value}); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    return add(parse_number({text, size}));
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return add({std::string(text, size)});
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    keys_.emplace_back(text, size);
    return true;
  }
  bool StartObject() { return open({Dict()}); }
  bool StartArray() { return open({List()}); }
  bool EndObject(rapidjson::SizeType) {
    merge_equal_keys(std::get<Dict>(open_.back().v));
    return close();
  }
  bool EndArray(rapidjson::SizeType) { return close(); }

  // All numbers come as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

  Value take() { return std::move(root_); }

 private:
  bool open(Value container) {
    open_.push_back(std::move(container));
    return open_.size() <= kMaxDepth;
  }
  bool close() {
    Value closed = std::move(open_.back());
    open_.pop_back();
    return add(std::move(closed));
  }
  bool add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* const list = std::get_if<List>(&open_.back().v)) {
      list->push_back(std::move(value));
    } else {
      std::get<Dict>(open_.back().v).push_back({std::move(keys_.back()), std::move(value)});
      keys_.pop_back();
    }
    return true;
  }

  std::vector<Value> open_;
  // Those whose value is not complete.
  std::vector<std::string> keys_;
  Value root_;
};

template <unsigned kMoreFlags>
rapidjson::ParseResult read_json(rapidjson::MemoryStream& stream, Builder& builder) {
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag |
                              rapidjson::kParseNumbersAsStringsFlag | kMoreFlags;
  rapidjson::Reader reader;
  return reader.Parse<kFlags>(stream, builder);
}

// Python reads these: half a surrogate pair, numbers of any size.
bool is_refused_by_the_reader_alone(rapidjson::ParseErrorCode code) {
  return code == rapidjson::kParseErrorStringUnicodeSurrogateInvalid ||
         code == rapidjson::kParseErrorNumberTooBig;
}

// ---- JSON out

void print_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : valid_utf8(text, true)) {
    switch (c) {
      case '"':
      case '\\':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void print_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  // The shortest text that reads back equal; as Python, a float never looks like an integer.
  const std::string text = fmt::format("{}", number);
  out += text;
  out += text.find_first_of(".e") == std::string::npos ? ".0" : "";
}

void print_value(std::string& out, const Value& value, std::size_t depth);

// Between `brackets`, one item a line. `print_item` prints the item alone.
template <typename Container, typename PrintItem>
void print_items(std::string& out, std::string_view brackets, const Container& items,
                 std::size_t depth, PrintItem print_item) {
  out += brackets[0];
  bool first = true;
  for (const auto& item : items) {
    out += first ? "\n" : ",\n";
    out.append(2 * (depth + 1), ' ');
    print_item(item);
    first = false;
  }
  if (!first) {
    out += '\n';
    out.append(2 * depth, ' ');
  }
  out += brackets[1];
}

void print_value(std::string& out, const Value& value, std::size_t depth) {
  std::visit(
      Overloaded{
          [&](std::monostate) { out += "null"; },
          [&](bool truth) { out += truth ? "true" : "false"; },
          [&](std::int64_t number) { out += fmt::to_string(number); },
          [&](std::uint64_t number) { out += fmt::to_string(number); },
          [&](const BigInt& number) { out += number.decimal; },
          [&](double number) { print_double(out, number); },
          [&](const std::string& text) { print_text(out, text); },
          [&](const Bytes& bytes) { print_text(out, bytes.bytes); },
          [&](const Complex& number) {
            print_value(out, Value{List{Value{number.real}, Value{number.imaginary}}}, depth);
          },
          [&](const List& list) {
            print_items(out, "[]", list, depth,
                        [&](const Value& item) { print_value(out, item, depth + 1); });
          },
          [&](const Dict& dict) {
            print_items(out, "{}", dict, depth, [&](const auto& entry) {
              print_text(out, entry.name);
              out += ": ";
              print_value(out, entry.value, depth + 1);
            });
          },
      },
      value.v);
}

// ---- pickle out, CPython: Lib/pickle.py, protocol 3

template <typename T>
void put_le(std::string& out, T number) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(number);
  for (std::size_t i = 0; i < sizeof bits; ++i) {
    out += static_cast<char>(bits >> 8 * i & 0xff);
  }
}

// An opcode and the 32-bit length of what follows.
void put_length(std::string& out, char opcode, std::size_t nbytes) {
  if (nbytes > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("an attribute has {} bytes, at most 2 GiB can be pickled", nbytes));
  }
  out += opcode;
  put_le(out, static_cast<std::uint32_t>(nbytes));
}

// LONG1 or LONG4. `bytes` is two's complement, little-endian, and shortened to the least that keeps
// the sign.
void pickle_long(std::string& out, std::string bytes) {
  const auto byte = [&](std::size_t from_end) {
    return static_cast<unsigned char>(bytes[bytes.size() - from_end]);
  };
  while (bytes.size() > 1 &&
         ((byte(1) == 0x00 && byte(2) < 0x80) || (byte(1) == 0xff && byte(2) >= 0x80))) {
    bytes.pop_back();
  }
  if (bytes.size() < 0x100) {
    out += '\x8a';
    out += static_cast<char>(bytes.size());
  } else {
    put_length(out, '\x8b', bytes.size());
  }
  out += bytes;
}

// "-18446744073709551616" as two's complement of any length.
std::string twos_complement(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  decimal.remove_prefix(negative ? 1 : 0);
  std::vector<std::uint32_t> limbs;
  while (!decimal.empty()) {
    // limbs = limbs * 10^n + the next n digits
    const std::string_view digits = decimal.substr(0, 9);
    std::uint64_t factor = 1;
    std::uint64_t carry = 0;
    for (const char digit : digits) {
      factor *= 10;
      carry = carry * 10 + static_cast<std::uint64_t>(digit - '0');
    }
    for (std::uint32_t& limb : limbs) {
      carry += limb * factor;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    limbs.push_back(static_cast<std::uint32_t>(carry));
    decimal.remove_prefix(digits.size());
  }
  limbs.push_back(0);  // room for the sign
  std::string bytes;
  std::uint64_t carry = 1;
  for (std::uint32_t limb : limbs) {
    if (negative) {
      carry += static_cast<std::uint32_t>(~limb);
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    put_le(bytes, limb);
  }
  return bytes;
}

void pickle_double(std::string& out, double number) {
  out += 'G';
  put_le(out, __builtin_bswap64(std::bit_cast<std::uint64_t>(number)));
}

void pickle_int(std::string& out, std::int64_t number) {
  if (number >= 0 && number <= 0xff) {
    out += 'K';
    out += static_cast<char>(number);
  } else if (number >= 0 && number <= 0xffff) {
    out += 'M';
    put_le(out, static_cast<std::uint16_t>(number));
  } else if (number == static_cast<std::int32_t>(number)) {
    out += 'J';
    put_le(out, static_cast<std::int32_t>(number));
  } else {
    std::string bytes;
    put_le(bytes, number);
    pickle_long(out, bytes);
  }
}

void pickle_text(std::string& out, std::string_view text) {
  const std::string valid = valid_utf8(text, false);
  put_length(out, 'X', valid.size());
  out += valid;
}

void pickle_value(std::string& out, const Value& value);

void pickle_dict(std::string& out, const Dict& dict) {
  out += '}';
  if (dict.empty()) {
    return;
  }
  out += '(';
  for (const auto& [name, value] : dict) {
    pickle_text(out, name);
    pickle_value(out, value);
  }
  out += 'u';
}

void pickle_value(std::string& out, const Value& value) {
  std::visit(Overloaded{
                 [&](std::monostate) { out += 'N'; },
                 [&](bool truth) { out += truth ? '\x88' : '\x89'; },
                 [&](std::int64_t number) { pickle_int(out, number); },
                 [&](std::uint64_t number) {
                   if (number >> 63 == 0) {
                     pickle_int(out, static_cast<std::int64_t>(number));
                   } else {
                     pickle_long(out, twos_complement(fmt::to_string(number)));
                   }
                 },
                 [&](const BigInt& number) { pickle_long(out, twos_complement(number.decimal)); },
                 [&](double number) { pickle_double(out, number); },
                 [&](const Complex& number) {
                   out += "cbuiltins\ncomplex\n";
                   pickle_double(out, number.real);
                   pickle_double(out, number.imaginary);
                   out += "\x86R";
                 },
                 [&](const std::string& text) { pickle_text(out, text); },
                 [&](const Bytes& bytes) {
                   if (bytes.bytes.size() < 0x100) {
                     out += 'C';
                     out += static_cast<char>(bytes.bytes.size());
                   } else {
                     put_length(out, 'B', bytes.bytes.size());
                   }
                   out += bytes.bytes;
                 },
                 [&](const List& list) {
                   out += ']';
                   if (list.empty()) {
                     return;
                   }
                   out += '(';
                   for (const Value& item : list) {
                     pickle_value(out, item);
                   }
                   out += 'e';
                 },
                 [&](const Dict& dict) { pickle_dict(out, dict); },
             },
             value.v);
}

// The pickle of a 0-d object array up to its only element, as numpy 1.x writes it but for the memo:
// _reconstruct(ndarray, (0,), b"b") and then its state (1, (), dtype("O8"), False, [element]).
// numpy 2 still knows the module by this name, 1.x knows no other.
constexpr std::string_view kArrayHead =
    "\x80\x03"
    "cnumpy.core.multiarray\n_reconstruct\n"
    "cnumpy\nndarray\n"
    "K\0\x85"
    "C\x01"
    "b"
    "\x87R"
    "(K\x01)"
    "cnumpy\ndtype\nX\x02\0\0\0O8\x89\x88\x87R"
    "(K\x03X\x01\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb"
    "\x89]"sv;
constexpr std::string_view kArrayTail = "atb.";

}  // namespace

void set_value(Dict& dict, const std::string& name, Value value) {
  const auto found =
      std::find_if(dict.begin(), dict.end(), [&](const auto& entry) { return entry.name == name; });
  if (found == dict.end()) {
    dict.push_back({name, std::move(value)});
  } else {
    found->value = std::move(value);
  }
}

Value parse_json(std::string_view text) {
  const auto fail = [](std::size_t offset, std::string_view reason) -> Error {
    return {ErrorKind::kUsage, fmt::format("JSON at byte {}: {}", offset, reason)};
  };
  rapidjson::MemoryStream stream(text.data(), text.size());
  std::string respelt;
  Builder builder;
  auto result = read_json<rapidjson::kParseValidateEncodingFlag>(stream, builder);
  if (is_refused_by_the_reader_alone(result.Code()) && is_utf8(text)) {
    respelt = respell_json(text);
    stream = rapidjson::MemoryStream(respelt.data(), respelt.size());
    builder = Builder();
    result = read_json<rapidjson::kParseNoFlags>(stream, builder);
    text = respelt;
  }
  if (result.Code() == rapidjson::kParseErrorTermination) {
    throw fail(result.Offset(), fmt::format("nested deeper than {}", kMaxDepth));
  }
  if (result.IsError()) {
    throw fail(result.Offset(), rapidjson::GetParseError_En(result.Code()));
  }
  // The reader takes a NUL for the end.
  if (stream.Tell() != text.size()) {
    throw fail(stream.Tell(), "a NUL byte after the value");
  }
  return builder.take();
}

std::string print_json(const Value& value) {
  std::string out;
  print_value(out, value, 0);
  return out + '\n';
}

std::string print_attrs_npy(const Dict& dict) {
  std::string out = print_npy_header({"'|O'", 8, 'O'}, {}, false);
  out += kArrayHead;
  pickle_dict(out, dict);
  return out += kArrayTail;
}

}  // namespace npyfs
