// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/pickle_item.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/transpose.h"
#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

using Node = PickleTree::Node;

// numpy's limit.
constexpr std::size_t kMostDimensions = 32;
// Lists may be repeated by the memo: ten lists of ten lists ... A list that takes more steps than
// this for every object of its pickle is a trap.
constexpr std::uint64_t kStepsPerObject = 16;
constexpr std::uint64_t kAlwaysAllowedSteps = 4096;
constexpr std::uint64_t kMostCodePoints = INT32_MAX / 4;
constexpr std::uint64_t kItemNbytesPerByte = 16;
constexpr std::uint64_t kAlwaysAllowedItemNbytes = std::uint64_t{64} << 20;

Error unsupported(const std::string& text) { return {ErrorKind::kUnsupported, text}; }

DType text_type(std::uint64_t length) {
  if (length > kMostCodePoints) {
    throw unsupported(
        fmt::format("a text of {} characters, numpy takes {} at most", length, kMostCodePoints));
  }
  return DType::simple(fmt::format("<U{}", std::max<std::uint64_t>(1, length)));
}

bool is_sequence(PickleKind kind) {
  return kind == PickleKind::kList || kind == PickleKind::kTuple || kind == PickleKind::kSet;
}

// Lists of numbers or of text: shape and type of what np.array makes of them.
class Sequence {
 public:
  Sequence(const PickleTree& tree, PayloadBytes& pickle)
      : tree_(tree),
        pickle_(pickle),
        steps_(tree.size() * kStepsPerObject + kAlwaysAllowedSteps),
        text_nbytes_(most_item_nbytes(pickle.nbytes())) {}

  // Calls `leaf` with each element in order and checks that all is rectangular.
  template <typename Leaf>
  void walk(PickleRef ref, std::size_t depth, const Leaf& leaf) {
    if (steps_-- == 0) {
      throw unsupported("a list that repeats itself without measure");
    }
    const Node& node = tree_[ref];
    if (!is_sequence(node.kind)) {
      if (rank_ && *rank_ != depth) {
        throw unsupported("a list with numbers beside lists");
      }
      rank_ = depth;
      leaf(ref);
      return;
    }
    const auto& items = tree_.items(ref);
    if (depth >= kMostDimensions) {
      throw unsupported(fmt::format("lists nested deeper than {}", kMostDimensions));
    }
    if (depth == shape_.size() && !rank_) {
      shape_.push_back(items.size());
    } else if (depth >= shape_.size() || shape_[depth] != items.size()) {
      throw unsupported("lists of several lengths");
    }
    for (const PickleRef item : items) {
      walk(item, depth + 1, leaf);
    }
  }

  void look_at(PickleRef ref) {
    const Node& node = tree_[ref];
    switch (node.kind) {
      case PickleKind::kBool:
        bools_ = true;
        return;
      case PickleKind::kInteger:
        integers_ = true;
        negative_ = negative_ || static_cast<std::int64_t>(node.number) < 0;
        return;
      case PickleKind::kLong:
        long_of(tree_, ref);
        longs_ = true;
        return;
      case PickleKind::kFloat:
        floats_ = true;
        return;
      case PickleKind::kText:
        texts_ = true;
        longest_ = std::max(longest_, utf8_length(take_text(ref)));
        return;
      default:
        throw unsupported("a list of objects");
    }
  }

  // A copy of the leaf's text. One text may stand in a list many times.
  std::string take_text(PickleRef ref) {
    const std::uint64_t nbytes = tree_[ref].nbytes;
    if (nbytes > text_nbytes_) {
      throw unsupported("a list of texts that repeats itself without measure");
    }
    text_nbytes_ -= nbytes;
    return tree_.bytes_of(ref, pickle_);
  }

  DType dtype() const {
    const bool numbers = bools_ || integers_ || longs_ || floats_;
    if ((texts_ && numbers) || (longs_ && (negative_ || floats_ || bools_))) {
      throw unsupported("a list of several types");
    }
    if (texts_) {
      return text_type(longest_);
    }
    return DType::simple(floats_ ? "<f8" : longs_ ? "<u8" : integers_ ? "<i8" : "|b1");
  }
  const Shape& shape() const { return shape_; }
  bool has_elements() const { return rank_.has_value(); }

  // Of an integer that int64 does not hold.
  static std::uint64_t long_of(const PickleTree& tree, PickleRef ref) {
    const std::string& text = tree.text(ref);
    if (text.size() > std::numeric_limits<std::uint64_t>::digits10 + 1) {
      throw unsupported("an integer beyond 64 bits");
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw unsupported("an integer beyond 64 bits");
    }
    return value;
  }

 private:
  const PickleTree& tree_;
  PayloadBytes& pickle_;
  std::uint64_t steps_;
  std::uint64_t text_nbytes_;  // that may still be copied
  Shape shape_;
  std::optional<std::size_t> rank_;
  bool bools_ = false;
  bool integers_ = false;
  bool longs_ = false;
  bool floats_ = false;
  bool texts_ = false;
  bool negative_ = false;
  std::uint64_t longest_ = 0;
};

PickleItem describe_sequence(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle) {
  Sequence sequence(tree, pickle);
  sequence.walk(ref, 0, [&](PickleRef leaf) { sequence.look_at(leaf); });
  if (!sequence.has_elements()) {
    if (sequence.shape().size() > 1) {
      throw unsupported("a list of empty lists");
    }
    return {PickleSource::kNothing, {}, {0}, 0, 0};
  }
  return {PickleSource::kRebuilt, sequence.dtype(), sequence.shape(), 0, 0};
}

PickleItem describe_array(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle) {
  const PickleTree::Array& array = tree.array(ref);
  if (array.dtype.kind == 'O') {
    throw unsupported("an array of Python objects");
  }
  PickleItem item{PickleSource::kRebuilt, array.dtype, array.shape, 0, 0};
  const Node& data = tree[array.data];
  if (array.dtype.kind == 'U') {
    item.dtype = text_type(array.dtype.itemsize / 4);
    return item;
  }
  if (!data.stored || array.fortran_order) {
    return item;
  }
  if (array.shape.empty() && array.dtype.itemsize <= sizeof item.place) {
    const auto bytes = pickle.at(data.number, array.dtype.itemsize);
    std::memcpy(&item.place, bytes.data(), bytes.size());
    item.source = PickleSource::kValue;
    return item;
  }
  item.source = PickleSource::kStored;
  item.place = data.number;
  item.nbytes = data.nbytes;
  return item;
}

PickleItem value_item(const char* dtype, std::uint64_t value) {
  return {PickleSource::kValue, DType::simple(dtype), {}, value, 0};
}

// The number as an element of a list of `dtype`.
void put_number(const PickleTree& tree, PickleRef ref, const DType& dtype, std::byte* out) {
  const Node& node = tree[ref];
  std::uint64_t bits = node.number;
  if (node.kind == PickleKind::kLong) {
    bits = Sequence::long_of(tree, ref);
  } else if (dtype.kind == 'f' && node.kind != PickleKind::kFloat) {
    bits = std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(bits)));
  }
  std::memcpy(out, &bits, dtype.itemsize);
}

// The object is not what was described: its pickle has changed, or someone else's is read.
Error changed(const PayloadBytes& pickle, const std::string& what) {
  return pickle.fault(0, what + " than when the pickle was looked at first");
}

// Text that is no longer than `out`.
void build_text(const std::string& text, const PayloadBytes& pickle, const DType& dtype,
                std::span<std::byte> out) {
  if (dtype.kind != 'U' || out.size() != dtype.itemsize || utf8_length(text) > out.size() / 4) {
    throw changed(pickle, "a text is of another length");
  }
  write_utf32(text, out);
}

// Whether a list of `dtype` may hold it.
bool fits_list(PickleKind kind, const DType& dtype) {
  switch (kind) {
    case PickleKind::kText:
      return dtype.kind == 'U';
    case PickleKind::kBool:
      return dtype.kind == 'b' || dtype.kind == 'i' || dtype.kind == 'f';
    case PickleKind::kInteger:
      return dtype.kind == 'i' || dtype.kind == 'u' || dtype.kind == 'f';
    case PickleKind::kLong:
      return dtype.kind == 'u';
    case PickleKind::kFloat:
      return dtype.kind == 'f';
    default:
      return false;
  }
}

void build_sequence(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle, const DType& dtype,
                    std::span<std::byte> out) {
  Sequence sequence(tree, pickle);
  const bool text = dtype.kind == 'U';
  sequence.walk(ref, 0, [&](PickleRef leaf) {
    if (!fits_list(tree[leaf].kind, dtype) || (!text && dtype.itemsize > sizeof(std::uint64_t))) {
      throw changed(pickle, "a list holds other objects");
    }
    if (out.size() < dtype.itemsize) {
      throw changed(pickle, "a list is longer");
    }
    if (text) {
      build_text(sequence.take_text(leaf), pickle, dtype, out.first(dtype.itemsize));
    } else {
      put_number(tree, leaf, dtype, out.data());
    }
    out = out.subspan(dtype.itemsize);
  });
  if (!out.empty()) {
    throw changed(pickle, "a list is shorter");
  }
}

// numpy's text, each element with room for more characters, little-endian.
void widen_text(std::span<const std::byte> in, const DType& from, std::span<std::byte> out,
                std::uint64_t itemsize) {
  const bool swap = from.descr.find('>') != std::string::npos;
  std::memset(out.data(), 0, out.size());
  for (std::size_t i = 0; i < in.size() / std::max<std::uint32_t>(1, from.itemsize); ++i) {
    std::byte* const to = out.data() + i * itemsize;
    std::memcpy(to, in.data() + i * from.itemsize, from.itemsize);
    for (std::size_t at = 0; swap && at < from.itemsize; at += 4) {
      std::reverse(to + at, to + at + 4);
    }
  }
}

void build_array(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle, const DType& dtype,
                 std::span<std::byte> out) {
  const PickleTree::Array& array = tree.array(ref);
  if (array.dtype.kind == 'O') {
    throw changed(pickle, "an array holds other objects");
  }
  const std::string data = tree.bytes_of(array.data, pickle);
  const std::uint64_t elements = *element_count(array.shape);
  const bool text = dtype.kind == 'U' && array.dtype.kind == 'U';
  if ((!text && array.dtype != dtype) || data.size() != elements * array.dtype.itemsize ||
      out.size() != elements * dtype.itemsize ||
      (text ? dtype.itemsize < array.dtype.itemsize : dtype.itemsize != array.dtype.itemsize)) {
    throw pickle.fault(0, fmt::format("an array {} of {} has {} bytes; the pickle is damaged",
                                      shape_text(array.shape), array.dtype.text(), data.size()));
  }
  std::span<const std::byte> bytes = std::as_bytes(std::span(data));
  std::vector<std::byte> ordered;
  if (array.fortran_order) {
    ordered.resize(bytes.size());
    transpose(bytes, ordered, array.shape, array.dtype.itemsize);
    bytes = ordered;
  }
  if (text) {
    widen_text(bytes, array.dtype, out, dtype.itemsize);
  } else {
    std::copy(bytes.begin(), bytes.end(), out.begin());
  }
}

PickleItem describe_object(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle) {
  const Node& node = tree[ref];
  switch (node.kind) {
    case PickleKind::kNone:
      return {};
    case PickleKind::kBool:
      return value_item("|b1", node.number);
    case PickleKind::kInteger:
      return value_item("<i8", node.number);
    case PickleKind::kLong:
      return value_item("<u8", Sequence::long_of(tree, ref));
    case PickleKind::kFloat:
      return value_item("<f8", node.number);
    case PickleKind::kText:
      return {node.stored ? PickleSource::kText : PickleSource::kRebuilt,
              text_type(utf8_length(tree.bytes_of(ref, pickle))),
              {},
              node.number,
              node.nbytes};
    case PickleKind::kBytes:
      return {node.stored ? PickleSource::kStored : PickleSource::kRebuilt,
              DType::simple("|u1"),
              {node.nbytes},
              node.number,
              node.nbytes};
    case PickleKind::kEncoded:
      return {
          PickleSource::kRebuilt, DType::simple("|u1"), {tree.bytes_of(ref, pickle).size()}, 0, 0};
    case PickleKind::kArray:
    case PickleKind::kScalar:
      return describe_array(tree, ref, pickle);
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kSet:
      return describe_sequence(tree, ref, pickle);
    case PickleKind::kDict:
      throw unsupported("a dict within a sample");
    case PickleKind::kUnknown:
      throw unsupported(node.nbytes > 0 ? tree.text(ref) : "an object that only code can make");
    default:
      throw unsupported("an object that only code can make");
  }
}

}  // namespace

std::uint64_t most_item_nbytes(std::uint64_t pickle_nbytes) {
  return checked_mul(pickle_nbytes, kItemNbytesPerByte).value_or(INT64_MAX / 2) +
         kAlwaysAllowedItemNbytes;
}

PickleItem describe_pickle(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle) {
  PickleItem item = describe_object(tree, ref, pickle);
  const auto elements = element_count(item.shape);
  const auto nbytes = elements ? checked_mul(*elements, item.dtype.itemsize) : std::nullopt;
  const std::uint64_t most = most_item_nbytes(pickle.nbytes());
  if (!nbytes || *nbytes > most) {
    throw unsupported(fmt::format("{} {}, more than {} bytes of a pickle of {}", item.dtype.text(),
                                  shape_text(item.shape), most, pickle.nbytes()));
  }
  return item;
}

void build_item(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle, const DType& dtype,
                std::span<std::byte> out) {
  const Node& node = tree[ref];
  switch (node.kind) {
    case PickleKind::kArray:
    case PickleKind::kScalar:
      build_array(tree, ref, pickle, dtype, out);
      return;
    case PickleKind::kText:
      build_text(tree.bytes_of(ref, pickle), pickle, dtype, out);
      return;
    case PickleKind::kBytes:
    case PickleKind::kEncoded: {
      const std::string bytes = tree.bytes_of(ref, pickle);
      if (bytes.size() != out.size()) {
        throw changed(pickle, "bytes are more or fewer");
      }
      std::memcpy(out.data(), bytes.data(), bytes.size());
      return;
    }
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kSet:
      build_sequence(tree, ref, pickle, dtype, out);
      return;
    default:
      throw changed(pickle, "the object is of another kind");
  }
}

}  // namespace npyfs
