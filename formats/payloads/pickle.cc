// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/text_view.h"
#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

// A sample has some hundred objects. Every opcode may make one, of 24 bytes and up.
constexpr std::size_t kMostNodes = std::size_t{4} << 20;
// References to them, on the stack, in the memo, in lists: one or two for each opcode.
constexpr std::uint64_t kMostReferences = std::uint64_t{32} << 20;
// Entries of the memo that are passed over, all in all.
constexpr std::uint64_t kMostMemoGap = 65536;
// Numbers and names. An integer of more bytes takes quadratic time to print.
constexpr std::uint64_t kMostLineNbytes = 4096;
constexpr std::uint64_t kMostIntegerNbytes = 1024;
constexpr std::size_t kMostDimensions = 32;
// The data of an array in protocol 0 is one line.
constexpr std::uint64_t kMostTextLineNbytes = std::uint64_t{1} << 30;

enum class Global : std::uint64_t {
  kUnknown,
  kReconstruct,
  kScalar,
  kFromBuffer,
  kNdarray,
  kDType,
  kEncode,
  kOrderedDict,
  kSet,
  kBytes,
  kByteArray,
  kComplex,
};

struct KnownGlobal {
  std::string_view name;
  Global global;
};

// numpy 2 calls its core _core; Python 2 calls its builtins __builtin__.
constexpr KnownGlobal kGlobals[] = {
    {"numpy.core.multiarray _reconstruct", Global::kReconstruct},
    {"numpy._core.multiarray _reconstruct", Global::kReconstruct},
    {"numpy.core.multiarray scalar", Global::kScalar},
    {"numpy._core.multiarray scalar", Global::kScalar},
    {"numpy.core.numeric _frombuffer", Global::kFromBuffer},
    {"numpy._core.numeric _frombuffer", Global::kFromBuffer},
    {"numpy ndarray", Global::kNdarray},
    {"numpy dtype", Global::kDType},
    {"_codecs encode", Global::kEncode},
    {"collections OrderedDict", Global::kOrderedDict},
    {"builtins set", Global::kSet},
    {"builtins frozenset", Global::kSet},
    {"builtins bytes", Global::kBytes},
    {"builtins bytearray", Global::kByteArray},
    {"builtins complex", Global::kComplex},
    {"__builtin__ complex", Global::kComplex},
    {"__builtin__ set", Global::kSet},
    {"__builtin__ frozenset", Global::kSet},
    {"__builtin__ bytes", Global::kBytes},
    {"__builtin__ bytearray", Global::kByteArray},
};

// Two's complement of any length to decimal.
std::string to_decimal(std::span<const std::byte> bytes) {
  std::vector<std::uint8_t> magnitude(bytes.size());
  const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  unsigned carry = 1;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned digit = static_cast<unsigned>(bytes[i]);
    if (negative) {
      digit = (~digit & 0xff) + carry;
      carry = digit >> 8;
    }
    magnitude[i] = static_cast<std::uint8_t>(digit);
  }
  std::string decimal;
  while (!magnitude.empty()) {
    unsigned rest = 0;
    for (std::size_t i = magnitude.size(); i-- > 0;) {
      rest = rest << 8 | magnitude[i];
      magnitude[i] = static_cast<std::uint8_t>(rest / 10);
      rest %= 10;
    }
    decimal += static_cast<char>('0' + rest);
    while (!magnitude.empty() && magnitude.back() == 0) {
      magnitude.pop_back();
    }
  }
  if (decimal.empty()) {
    return "0";
  }
  decimal += negative ? "-" : "";
  std::reverse(decimal.begin(), decimal.end());
  return decimal;
}

// The digits of a Python escape; nothing where they are none.
std::optional<char32_t> parse_hex(std::string_view text, std::size_t at, std::size_t digits) {
  std::uint32_t value = 0;
  if (at + digits > text.size()) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + digits, value, 16);
  return error == std::errc() && end == text.data() + at + digits ? std::optional<char32_t>(value)
                                                                  : std::nullopt;
}

}  // namespace

// The machine. See pickletools for what each opcode does.
class PickleReader {
 public:
  PickleReader(PayloadBytes& pickle, std::uint64_t offset) : pickle_(pickle), at_(offset) {}

  PickleTree read() {
    while (step()) {
    }
    tree_.end_ = at_;
    return std::move(tree_);
  }

 private:
  using Node = PickleTree::Node;

  Error fault(const std::string& text) const {
    return pickle_.fault(opcode_at_, text + "; the pickle is damaged");
  }
  Error limit(const std::string& text) const {
    return {ErrorKind::kUnsupported, pickle_.fault(opcode_at_, text).what()};
  }

  // ---- reading

  std::uint64_t take(std::uint64_t nbytes) {
    if (!lies_within(at_, nbytes, pickle_.nbytes())) {
      throw fault(fmt::format("{} bytes follow, expected at most {} as the pickle ends there",
                              nbytes, pickle_.nbytes() - at_));
    }
    const std::uint64_t begin = at_;
    at_ += nbytes;
    return begin;
  }
  template <typename T>
  T number() {
    return pickle_.number<T>(take(sizeof(T)));
  }
  std::string line(std::uint64_t most = kMostLineNbytes) {
    std::string text;
    while (text.size() <= most) {
      const auto part = as_text(pickle_.at_most(at_, 256));
      if (part.empty()) {
        throw fault("a line does not end");
      }
      const std::size_t end = part.find('\n');
      text += part.substr(0, end);
      at_ += std::min(end, part.size());
      if (end != std::string_view::npos) {
        ++at_;
        return text;
      }
    }
    throw limit(fmt::format("a line is longer than {} bytes", most));
  }

  // ---- building

  PickleRef add(Node node) {
    if (tree_.nodes_.size() >= kMostNodes) {
      throw limit(fmt::format("the pickle has more than {} objects", kMostNodes));
    }
    tree_.nodes_.push_back(node);
    return static_cast<PickleRef>(tree_.nodes_.size() - 1);
  }
  void push(PickleRef ref) {
    count_reference();
    stack_.push_back(ref);
  }
  void count_reference() {
    if (++references_ > kMostReferences) {
      throw limit(fmt::format("the pickle has more than {} references", kMostReferences));
    }
  }
  void push(PickleKind kind, std::uint64_t value = 0) { push(add({kind, false, value, 0})); }
  void push_stored(PickleKind kind, std::uint64_t nbytes) {
    const std::uint64_t begin = take(nbytes);
    push(add({kind, true, begin, nbytes}));
  }
  PickleRef add_text(PickleKind kind, std::string text) {
    const std::uint64_t nbytes = text.size();
    tree_.texts_.push_back(std::move(text));
    return add({kind, false, tree_.texts_.size() - 1, nbytes});
  }
  PickleRef add_list(PickleKind kind, std::vector<PickleRef> items) {
    tree_.lists_.push_back(std::move(items));
    return add({kind, false, tree_.lists_.size() - 1, 0});
  }
  PickleRef add_array(PickleKind kind, PickleTree::Array array) {
    tree_.arrays_.push_back(std::move(array));
    return add({kind, false, tree_.arrays_.size() - 1, 0});
  }
  PickleRef add_unknown(const std::string& what) {
    if (!tree_.unknown_) {
      tree_.unknown_ = what;
    }
    return add({PickleKind::kUnknown, false, 0, 0});
  }

  const Node& node(PickleRef ref) const { return tree_.nodes_[ref]; }
  std::vector<PickleRef>& items(PickleRef ref) { return tree_.lists_[node(ref).number]; }
  bool is(PickleRef ref, PickleKind kind) const { return node(ref).kind == kind; }

  PickleRef pop() {
    require(1);
    const PickleRef top = stack_.back();
    stack_.pop_back();
    return top;
  }
  PickleRef top() {
    require(1);
    return stack_.back();
  }
  // Objects above the last mark.
  void require(std::size_t count) const {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - floor < count) {
      throw fault("an opcode takes more objects than there are");
    }
  }
  // All above the last mark, which goes with them.
  std::vector<PickleRef> pop_marked() {
    if (marks_.empty()) {
      throw fault("an opcode takes a mark, expected one before");
    }
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleRef> marked(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return marked;
  }
  std::vector<PickleRef> pop_many(std::size_t count) {
    require(count);
    std::vector<PickleRef> many(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return many;
  }

  // ---- memo

  void put(std::uint64_t index) {
    const PickleRef object = top();
    // Writers count up from 0 (some from 1); what they leave out takes as much memory as what they
    // put there.
    if (index > memo_.size() + kMostMemoGap) {
      throw limit(fmt::format("the memo has {} entries, the next is {}", memo_.size(), index));
    }
    for (; memo_.size() <= index; memo_.push_back(kNoRef)) {
      count_reference();
      memo_gaps_ += memo_.size() < index;
    }
    if (memo_gaps_ > kMostMemoGap) {
      throw limit(fmt::format("the memo leaves out more than {} entries", kMostMemoGap));
    }
    memo_[index] = object;
  }
  void get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kNoRef) {
      throw fault(fmt::format("memo entry {} is asked for, expected one that was made", index));
    }
    push(memo_[index]);
  }
  std::uint64_t line_index() {
    const std::string text = line();
    std::uint64_t index = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw fault(fmt::format("a memo entry is '{}', expected a number", printable(text)));
    }
    return index;
  }

  // ---- opcodes

  bool step();
  bool step_values(std::uint8_t opcode);
  bool step_containers(std::uint8_t opcode);
  bool step_objects(std::uint8_t opcode);

  void push_decimal(std::string text) {
    if (text.ends_with('L')) {
      text.pop_back();
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    if (text.size() == sign || text.find_first_not_of("0123456789", sign) != std::string::npos) {
      throw fault(fmt::format("an integer is '{}', expected digits", printable(text)));
    }
    if (error == std::errc() && end == text.data() + text.size()) {
      push(PickleKind::kInteger, static_cast<std::uint64_t>(value));
    } else {
      push(add_text(PickleKind::kLong, std::move(text)));
    }
  }
  void push_long(std::uint64_t nbytes) {
    if (nbytes > kMostIntegerNbytes) {
      take(nbytes);
      throw limit(
          fmt::format("an integer has {} bytes, expected at most {}", nbytes, kMostIntegerNbytes));
    }
    const std::uint64_t begin = take(nbytes);
    const auto bytes = pickle_.at(begin, nbytes);
    if (nbytes > 8) {
      push(add_text(PickleKind::kLong, to_decimal(bytes)));
      return;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < nbytes; ++i) {
      value |= static_cast<std::uint64_t>(bytes[i]) << 8 * i;
    }
    if (nbytes > 0 && nbytes < 8 && (bytes[nbytes - 1] & std::byte{0x80}) != std::byte{0}) {
      value |= ~std::uint64_t{0} << 8 * nbytes;
    }
    push(PickleKind::kInteger, value);
  }
  void push_float_line() {
    const std::string text = line();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) {
      throw fault(fmt::format("a float is '{}', expected a number", printable(text)));
    }
    push(PickleKind::kFloat, std::bit_cast<std::uint64_t>(value));
  }
  void push_quoted();
  void push_raw_unicode();
  // What Python 2 calls a string is text where it is ASCII, else bytes.
  void push_python2(std::uint64_t nbytes) {
    const std::uint64_t begin = take(nbytes);
    bool ascii = true;
    for (std::uint64_t done = 0; ascii && done < nbytes;) {
      const auto part = pickle_.at(begin + done, std::min<std::uint64_t>(nbytes - done, 4096));
      ascii =
          std::all_of(part.begin(), part.end(), [](std::byte b) { return b < std::byte{0x80}; });
      done += part.size();
    }
    push(add({ascii ? PickleKind::kText : PickleKind::kBytes, true, begin, nbytes}));
  }
  void set_items(PickleRef dict, const std::vector<PickleRef>& pairs) {
    if (pairs.size() % 2 != 0) {
      throw fault("a dict is given a key without a value");
    }
    if (is(dict, PickleKind::kDict)) {
      append(dict, pairs);
    } else if (!is(dict, PickleKind::kUnknown)) {
      throw fault("items are given to what is no dict");
    }
  }
  void append_to(PickleRef list, const std::vector<PickleRef>& more, PickleKind kind) {
    if (is(list, kind)) {
      append(list, more);
    } else if (!is(list, PickleKind::kUnknown)) {
      throw fault("items are given to what is no list");
    }
  }
  void append(PickleRef list, const std::vector<PickleRef>& more) {
    std::vector<PickleRef>& to = items(list);
    to.insert(to.end(), more.begin(), more.end());
  }
  void push_global(const std::string& module, const std::string& name);
  std::string short_text(PickleRef ref) {
    if (!is(ref, PickleKind::kText) || node(ref).nbytes > kMostLineNbytes) {
      throw fault("a name is no short text");
    }
    return tree_.bytes_of(ref, pickle_);
  }

  // ---- numpy

  PickleRef reduce(PickleRef callable, PickleRef arguments);
  PickleRef reduce_known(Global global, const std::vector<PickleRef>& arguments);
  PickleRef make_dtype(const std::vector<PickleRef>& arguments);
  PickleRef make_array(PickleKind kind, PickleRef dtype, PickleRef shape, bool fortran,
                       PickleRef data);
  PickleRef ordered_dict(const std::vector<PickleRef>& arguments);
  void build(PickleRef object, PickleRef state);
  void build_dtype(PickleRef object, const std::vector<PickleRef>& state);
  std::optional<Shape> shape_of(PickleRef ref) const;
  bool holds_bytes(PickleRef ref) const {
    return is(ref, PickleKind::kBytes) || is(ref, PickleKind::kText) ||
           is(ref, PickleKind::kEncoded);
  }

  static constexpr PickleRef kNoRef = UINT32_MAX;

  // A dtype as it is pickled: a code, and then its state.
  struct PickledDType {
    std::string code;
    char order = '<';
    std::string unit;
    std::optional<std::uint64_t> itemsize;
    bool plain = true;
  };
  std::optional<DType> finish_dtype(const PickledDType& dtype) const;

  PayloadBytes& pickle_;
  std::uint64_t at_;
  std::uint64_t opcode_at_ = 0;
  PickleTree tree_;
  std::vector<PickleRef> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleRef> memo_;
  std::uint64_t memo_gaps_ = 0;
  std::vector<PickledDType> dtypes_;
  std::uint64_t references_ = 0;
};

// False behind STOP.
bool PickleReader::step() {
  opcode_at_ = at_;
  const auto opcode = number<std::uint8_t>();
  if (opcode == '.') {
    if (!marks_.empty()) {
      throw fault("the pickle stops behind a mark");
    }
    tree_.root_ = pop();
    return false;
  }
  if (!step_values(opcode) && !step_containers(opcode) && !step_objects(opcode)) {
    throw fault(fmt::format("the opcode is {:#04x}, expected one of protocols 0 to 5", opcode));
  }
  return true;
}

bool PickleReader::step_values(std::uint8_t opcode) {
  switch (opcode) {
    case 'N':
      push(PickleKind::kNone);
      return true;
    case 0x88:
    case 0x89:
      push(PickleKind::kBool, opcode == 0x88 ? 1 : 0);
      return true;
    case 'K':
      push(PickleKind::kInteger, number<std::uint8_t>());
      return true;
    case 'M':
      push(PickleKind::kInteger, number<std::uint16_t>());
      return true;
    case 'J':
      push(PickleKind::kInteger, static_cast<std::uint64_t>(std::int64_t{number<std::int32_t>()}));
      return true;
    case 'I': {
      std::string text = line();
      if (text == "00" || text == "01") {
        push(PickleKind::kBool, text == "01" ? 1 : 0);
      } else {
        push_decimal(std::move(text));
      }
      return true;
    }
    case 'L':
      push_decimal(line());
      return true;
    case 0x8a:
      push_long(number<std::uint8_t>());
      return true;
    case 0x8b:
      push_long(number<std::uint32_t>());
      return true;
    case 'F':
      push_float_line();
      return true;
    case 'G':
      push(PickleKind::kFloat, __builtin_bswap64(number<std::uint64_t>()));
      return true;
    case 'X':
      push_stored(PickleKind::kText, number<std::uint32_t>());
      return true;
    case 0x8c:
      push_stored(PickleKind::kText, number<std::uint8_t>());
      return true;
    case 0x8d:
      push_stored(PickleKind::kText, number<std::uint64_t>());
      return true;
    case 'V':
      push_raw_unicode();
      return true;
    case 'C':
      push_stored(PickleKind::kBytes, number<std::uint8_t>());
      return true;
    case 'B':
      push_stored(PickleKind::kBytes, number<std::uint32_t>());
      return true;
    case 0x8e:
    case 0x96:
      push_stored(PickleKind::kBytes, number<std::uint64_t>());
      return true;
    case 'U':
      push_python2(number<std::uint8_t>());
      return true;
    case 'T':
      push_python2(number<std::uint32_t>());
      return true;
    case 'S':
      push_quoted();
      return true;
    default:
      return false;
  }
}

bool PickleReader::step_containers(std::uint8_t opcode) {
  switch (opcode) {
    case '(':
      count_reference();
      marks_.push_back(stack_.size());
      return true;
    case '0':
      if (!marks_.empty() && stack_.size() == marks_.back()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case '1':
      pop_marked();
      return true;
    case '2':
      push(top());
      return true;
    case ']':
      push(add_list(PickleKind::kList, {}));
      return true;
    case '}':
      push(add_list(PickleKind::kDict, {}));
      return true;
    case 0x8f:
      push(add_list(PickleKind::kSet, {}));
      return true;
    case ')':
      push(add_list(PickleKind::kTuple, {}));
      return true;
    case 0x85:
    case 0x86:
    case 0x87: {
      auto many = pop_many(opcode - 0x84U);
      push(add_list(PickleKind::kTuple, std::move(many)));
      return true;
    }
    case 't':
      push(add_list(PickleKind::kTuple, pop_marked()));
      return true;
    case 'l':
      push(add_list(PickleKind::kList, pop_marked()));
      return true;
    case 0x91:
      push(add_list(PickleKind::kSet, pop_marked()));
      return true;
    case 'd': {
      const auto pairs = pop_marked();
      push(add_list(PickleKind::kDict, {}));
      set_items(top(), pairs);
      return true;
    }
    case 'a': {
      const PickleRef item = pop();
      append_to(top(), {item}, PickleKind::kList);
      return true;
    }
    case 'e': {
      const auto marked = pop_marked();
      append_to(top(), marked, PickleKind::kList);
      return true;
    }
    case 0x90: {
      const auto marked = pop_marked();
      append_to(top(), marked, PickleKind::kSet);
      return true;
    }
    case 's': {
      const auto pair = pop_many(2);
      set_items(top(), pair);
      return true;
    }
    case 'u': {
      const auto pairs = pop_marked();
      set_items(top(), pairs);
      return true;
    }
    default:
      return false;
  }
}

bool PickleReader::step_objects(std::uint8_t opcode) {
  switch (opcode) {
    case 0x80:
      if (const auto protocol = number<std::uint8_t>(); protocol > 5) {
        throw limit(fmt::format("the protocol is {}, expected 0 to 5", protocol));
      }
      return true;
    case 0x95:
      take(8);
      return true;
    case 'p':
      put(line_index());
      return true;
    case 'q':
      put(number<std::uint8_t>());
      return true;
    case 'r':
      put(number<std::uint32_t>());
      return true;
    case 0x94:
      put(memo_.size());
      return true;
    case 'g':
      get(line_index());
      return true;
    case 'h':
      get(number<std::uint8_t>());
      return true;
    case 'j':
      get(number<std::uint32_t>());
      return true;
    case 'c': {
      const std::string module = line();
      push_global(module, line());
      return true;
    }
    case 0x93: {
      const auto names = pop_many(2);
      push_global(short_text(names[0]), short_text(names[1]));
      return true;
    }
    case 'R': {
      const auto pair = pop_many(2);
      push(reduce(pair[0], pair[1]));
      return true;
    }
    case 'b': {
      const PickleRef state = pop();
      build(top(), state);
      return true;
    }
    case 0x81: {
      pop_many(2);
      push(add_unknown("an object of some class"));
      return true;
    }
    case 0x92: {
      pop_many(3);
      push(add_unknown("an object of some class"));
      return true;
    }
    case 'i': {
      const std::string module = line();
      const std::string name = line();
      pop_marked();
      push(add_unknown(printable(module + "." + name)));
      return true;
    }
    case 'o':
      pop_marked();
      push(add_unknown("an object of some class"));
      return true;
    case 'P':
      line();
      push(add_unknown("a persistent id"));
      return true;
    case 'Q':
      pop();
      push(add_unknown("a persistent id"));
      return true;
    case 0x82:
      take(1);
      push(add_unknown("an extension"));
      return true;
    case 0x83:
      take(2);
      push(add_unknown("an extension"));
      return true;
    case 0x84:
      take(4);
      push(add_unknown("an extension"));
      return true;
    case 0x97:
      push(add_unknown("a buffer outside of the pickle"));
      return true;
    case 0x98:
      require(1);
      return true;
    default:
      return false;
  }
}

// 'text' with Python's escapes for bytes.
void PickleReader::push_quoted() {
  const std::string text = line(kMostTextLineNbytes);
  if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') ||
      text.back() != text.front()) {
    throw fault("a string has no quotes");
  }
  constexpr std::string_view kNames = "\\'\"nrtabfv";
  constexpr std::string_view kMeanings = "\\'\"\n\r\t\a\b\f\v";
  std::string bytes;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
      continue;
    }
    ++i;
    if (const auto hex = text[i] == 'x' ? parse_hex(text, i + 1, 2) : std::nullopt) {
      bytes += static_cast<char>(*hex);
      i += 2;
    } else if (const auto at = kNames.find(text[i]); at != std::string_view::npos) {
      bytes += kMeanings[at];
    } else {
      bytes += '\\';
      bytes += text[i];
    }
  }
  const bool ascii = std::all_of(bytes.begin(), bytes.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  push(add_text(ascii ? PickleKind::kText : PickleKind::kBytes, std::move(bytes)));
}

// Text in Latin-1, with \uXXXX and \UXXXXXXXX for what that lacks.
void PickleReader::push_raw_unicode() {
  const std::string raw = line(kMostTextLineNbytes);
  std::string text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const bool escape = raw[i] == '\\' && i + 1 < raw.size();
    const std::size_t digits = !escape ? 0 : raw[i + 1] == 'u' ? 4 : raw[i + 1] == 'U' ? 8 : 0;
    if (digits == 0) {
      append_utf8(text, static_cast<unsigned char>(raw[i]));
      continue;
    }
    const auto point = parse_hex(raw, i + 2, digits);
    if (!point || *point > 0x10ffff) {
      throw fault("an escape in a text is no code point");
    }
    append_utf8(text, *point);
    i += 1 + digits;
  }
  push(add_text(PickleKind::kText, std::move(text)));
}

void PickleReader::push_global(const std::string& module, const std::string& name) {
  const std::string full = module + " " + name;
  for (const KnownGlobal& known : kGlobals) {
    if (known.name == full) {
      push(PickleKind::kGlobal, static_cast<std::uint64_t>(known.global));
      return;
    }
  }
  push(add_unknown(printable(module + "." + name)));
}

PickleRef PickleReader::reduce(PickleRef callable, PickleRef arguments) {
  if (is(callable, PickleKind::kUnknown)) {
    return add_unknown("a call");
  }
  if (!is(callable, PickleKind::kGlobal) || !is(arguments, PickleKind::kTuple)) {
    throw fault("a call is of no global with a tuple of arguments");
  }
  constexpr std::size_t kMostArguments = 4;
  if (items(arguments).size() > kMostArguments) {
    return add_unknown("a call with many arguments");
  }
  // A copy: what is built moves the lists.
  const std::vector<PickleRef> list = items(arguments);
  return reduce_known(static_cast<Global>(node(callable).number), list);
}

PickleRef PickleReader::reduce_known(Global global, const std::vector<PickleRef>& arguments) {
  const std::size_t count = arguments.size();
  switch (global) {
    case Global::kReconstruct:
      if (count == 3 && is(arguments[0], PickleKind::kGlobal) &&
          node(arguments[0]).number == static_cast<std::uint64_t>(Global::kNdarray)) {
        return add({PickleKind::kShell, false, 0, 0});
      }
      return add_unknown("an array of some class");
    case Global::kScalar:
      if (count == 2) {
        return make_array(PickleKind::kScalar, arguments[0], kNoRef, false, arguments[1]);
      }
      break;
    case Global::kFromBuffer:
      if (count == 4 && is(arguments[3], PickleKind::kText)) {
        return make_array(PickleKind::kArray, arguments[1], arguments[2],
                          short_text(arguments[3]) == "F", arguments[0]);
      }
      break;
    case Global::kDType:
      return make_dtype(arguments);
    case Global::kEncode:
      if (count == 2 && is(arguments[0], PickleKind::kText) &&
          is(arguments[1], PickleKind::kText)) {
        const std::string codec = short_text(arguments[1]);
        if (codec == "latin1" || codec == "latin-1") {
          return add_list(PickleKind::kEncoded, {arguments[0]});
        }
      }
      break;
    case Global::kOrderedDict:
      return ordered_dict(arguments);
    case Global::kSet:
      if (count == 1 && is(arguments[0], PickleKind::kList)) {
        auto list = items(arguments[0]);
        references_ += list.size();
        count_reference();
        return add_list(PickleKind::kSet, std::move(list));
      }
      break;
    case Global::kBytes:
    case Global::kByteArray:
      if (count == 0) {
        return add_text(PickleKind::kBytes, {});
      }
      if (count == 1 &&
          (is(arguments[0], PickleKind::kBytes) || is(arguments[0], PickleKind::kEncoded))) {
        return arguments[0];
      }
      if (count == 2 && is(arguments[0], PickleKind::kText)) {
        return add_list(PickleKind::kEncoded, {arguments[0]});
      }
      break;
    case Global::kComplex:
      if (count == 2 && is(arguments[0], PickleKind::kFloat) &&
          is(arguments[1], PickleKind::kFloat)) {
        return add_list(PickleKind::kComplex, arguments);
      }
      break;
    default:
      break;
  }
  return add_unknown("a call with unusual arguments");
}

PickleRef PickleReader::ordered_dict(const std::vector<PickleRef>& arguments) {
  std::vector<PickleRef> pairs;
  if (arguments.size() == 1 && is(arguments[0], PickleKind::kList)) {
    for (const PickleRef pair : items(arguments[0])) {
      const bool two =
          (is(pair, PickleKind::kList) || is(pair, PickleKind::kTuple)) && items(pair).size() == 2;
      if (!two) {
        return add_unknown("an OrderedDict of unusual arguments");
      }
      count_reference();
      pairs.push_back(items(pair)[0]);
      pairs.push_back(items(pair)[1]);
    }
  } else if (!arguments.empty()) {
    return add_unknown("an OrderedDict of unusual arguments");
  }
  return add_list(PickleKind::kDict, std::move(pairs));
}

PickleRef PickleReader::make_dtype(const std::vector<PickleRef>& arguments) {
  if (arguments.empty() || !is(arguments[0], PickleKind::kText)) {
    return add_unknown("a dtype of unusual arguments");
  }
  dtypes_.push_back({short_text(arguments[0]), '<', {}, std::nullopt, true});
  return add({PickleKind::kDType, false, dtypes_.size() - 1, 0});
}

// (version, byte order, subdtype, names, fields, itemsize, alignment, flags[, metadata])
void PickleReader::build_dtype(PickleRef object, const std::vector<PickleRef>& state) {
  PickledDType& dtype = dtypes_[node(object).number];
  if (state.size() < 8 || !is(state[1], PickleKind::kText)) {
    throw fault("the state of a dtype is no tuple of 8 or 9");
  }
  const std::string order = short_text(state[1]);
  dtype.order = order.empty() ? '<' : order[0] == '>' ? '>' : '<';
  dtype.plain = is(state[2], PickleKind::kNone) && is(state[3], PickleKind::kNone);
  if (is(state[5], PickleKind::kInteger) && static_cast<std::int64_t>(node(state[5]).number) > 0) {
    dtype.itemsize = node(state[5]).number;
  }
  // ({}, (b"ns", 1, 1, 1)): a unit, how many of it, and two that are 1.
  if (state.size() == 9 && is(state[8], PickleKind::kTuple) && items(state[8]).size() == 2) {
    const PickleRef time = items(state[8])[1];
    if (!is(time, PickleKind::kTuple) || items(time).size() < 2 || !holds_bytes(items(time)[0]) ||
        !is(items(time)[1], PickleKind::kInteger)) {
      throw fault("the unit of a date is no tuple of a name and a number");
    }
    if (node(items(time)[0]).nbytes > kMostLineNbytes) {
      throw fault("the unit of a date is no short name");
    }
    const std::string unit = tree_.bytes_of(items(time)[0], pickle_);
    const std::uint64_t count = node(items(time)[1]).number;
    dtype.unit = unit == "generic"
                     ? ""
                     : fmt::format("[{}{}]", count == 1 ? "" : fmt::to_string(count), unit);
  }
}

// Nothing for what is no plain type.
std::optional<DType> PickleReader::finish_dtype(const PickledDType& dtype) const {
  if (!dtype.plain || dtype.code.empty()) {
    return std::nullopt;
  }
  if (dtype.code == "O8" || dtype.code == "O4" || dtype.code == "O") {
    return DType{"'|O'", 8, 'O'};
  }
  std::string code = dtype.code;
  if ((code == "S0" || code == "U0" || code == "S" || code == "U") && dtype.itemsize) {
    code = fmt::format("{}{}", code[0], code[0] == 'U' ? *dtype.itemsize / 4 : *dtype.itemsize);
  }
  auto found = DType::from_user(std::string(1, dtype.order) + code + dtype.unit);
  return found && found->itemsize > 0 ? found : std::nullopt;
}

std::optional<Shape> PickleReader::shape_of(PickleRef ref) const {
  Shape shape;
  if (ref == kNoRef) {
    return shape;
  }
  // One axis may be a number alone.
  if (is(ref, PickleKind::kInteger)) {
    shape.push_back(node(ref).number);
  } else if (is(ref, PickleKind::kTuple)) {
    const auto& axes = tree_.lists_[node(ref).number];
    if (axes.size() > kMostDimensions) {
      return std::nullopt;
    }
    for (const PickleRef axis : axes) {
      if (!is(axis, PickleKind::kInteger)) {
        return std::nullopt;
      }
      shape.push_back(node(axis).number);
    }
  } else {
    return std::nullopt;
  }
  // Also for a number below zero.
  return element_count(shape) ? std::optional(shape) : std::nullopt;
}

PickleRef PickleReader::make_array(PickleKind kind, PickleRef dtype, PickleRef shape, bool fortran,
                                   PickleRef data) {
  if (is(dtype, PickleKind::kUnknown) || is(data, PickleKind::kUnknown)) {
    return add_unknown("an array of what needs code");
  }
  if (!is(dtype, PickleKind::kDType)) {
    throw fault("the dtype of an array is no dtype");
  }
  const auto type = finish_dtype(dtypes_[node(dtype).number]);
  if (!type) {
    // No code is needed for it; only this array is nothing that can be shown.
    return add_text(PickleKind::kUnknown,
                    fmt::format("an array of dtype {}, which is no plain type",
                                printable(dtypes_[node(dtype).number].code)));
  }
  const auto dimensions = shape_of(shape);
  if (!dimensions) {
    throw fault("the shape of an array is no tuple of sizes");
  }
  PickleTree::Array array{*type, *dimensions, fortran && dimensions->size() > 1, data};
  const std::uint64_t elements = *element_count(*dimensions);
  if (type->kind == 'O') {
    if (kind == PickleKind::kScalar || !is(data, PickleKind::kList)) {
      return add_unknown("an array of objects");
    }
    if (items(data).size() != elements) {
      throw fault("an array of objects has not as many as its shape says");
    }
    return add_array(kind, std::move(array));
  }
  if (!holds_bytes(data)) {
    return add_unknown("an array without bytes of its own");
  }
  const auto nbytes = checked_mul(elements, type->itemsize);
  const bool encoded = is(data, PickleKind::kEncoded);
  const std::uint64_t found = node(encoded ? items(data)[0] : data).nbytes;
  // A character of Latin-1 takes one or two bytes of UTF-8; they are counted when they are decoded.
  const bool fits =
      nbytes && (encoded ? found >= *nbytes && found / 2 <= *nbytes : found == *nbytes);
  if (!fits) {
    throw fault(fmt::format("an array {} of {} has {} bytes, expected as many as it takes",
                            shape_text(*dimensions), type->text(), found));
  }
  return add_array(kind, std::move(array));
}

void PickleReader::build(PickleRef object, PickleRef state) {
  switch (node(object).kind) {
    case PickleKind::kUnknown:
      return;
    case PickleKind::kDType:
      if (!is(state, PickleKind::kTuple)) {
        throw fault("the state of a dtype is no tuple");
      }
      build_dtype(object, items(state));
      return;
    case PickleKind::kShell: {
      // (version, shape, dtype, Fortran order, data); the oldest have no version.
      if (!is(state, PickleKind::kTuple) || items(state).size() < 4 || items(state).size() > 5) {
        throw fault("the state of an array is no tuple of 4 or 5");
      }
      const std::vector<PickleRef>& list = items(state);
      const std::size_t skip = list.size() - 4;
      const bool fortran = node(list[skip + 2]).number != 0;
      const PickleRef made =
          make_array(PickleKind::kArray, list[skip + 1], list[skip], fortran, list[skip + 3]);
      tree_.nodes_[object] = tree_.nodes_[made];
      return;
    }
    default:
      tree_.nodes_[object] = tree_.nodes_[add_unknown("an object with a state")];
  }
}

std::string PickleTree::bytes_of(PickleRef ref, PayloadBytes& pickle) const {
  const Node& node = nodes_[ref];
  if (node.kind != PickleKind::kEncoded) {
    return node.stored ? std::string(as_text(pickle.at(node.number, node.nbytes)))
                       : texts_[node.number];
  }
  const std::string text = bytes_of(items(ref)[0], pickle);
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_code_point(text, at);
    if (!point || *point > 0xff) {
      throw pickle.fault(0,
                         "bytes that are written as text hold more than Latin-1; the pickle is "
                         "damaged");
    }
    bytes += static_cast<char>(*point);
  }
  return bytes;
}

PickleTree parse_pickle(PayloadBytes& pickle, std::uint64_t offset) {
  return PickleReader(pickle, offset).read();
}

}  // namespace npyfs
