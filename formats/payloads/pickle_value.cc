// SPDX-License-Identifier: Apache-2.0
//
// A pickle as attributes.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "formats/bytes/endian.h"
#include "formats/bytes/half.h"
#include "formats/bytes/npy_header.h"
#include "formats/bytes/utf8.h"
#include "formats/payloads/pickle.h"
#include "formats/payloads/pickle_item.h"

namespace npyfs {

namespace {

using Node = PickleTree::Node;

// As JSON's, less those that a printed pickle adds.
constexpr std::size_t kMostDepth = 500;
// The memo may repeat a list; what becomes of it all is bounded.
constexpr std::uint64_t kMostValues = std::uint64_t{1} << 20;
// The text in it, which the memo may repeat too.
constexpr std::uint64_t kMostNbytes = std::uint64_t{256} << 20;

// Why a value is dropped; caught where the container is made.
struct Dropped {
  std::string why;
};

// One element of an array; `text` is little-endian already.
Value element_value(const DType& dtype, const std::byte* bytes) {
  const bool swap = dtype.kind != 'U' && dtype.descr.find('>') != std::string::npos;
  switch (dtype.kind) {
    case 'b':
      return {bytes[0] != std::byte{0}};
    case 'i': {
      const std::uint64_t n = dtype.itemsize;
      return {n == 1   ? std::int64_t{load<std::int8_t>(bytes, swap)}
              : n == 2 ? std::int64_t{load<std::int16_t>(bytes, swap)}
              : n == 4 ? std::int64_t{load<std::int32_t>(bytes, swap)}
                       : load<std::int64_t>(bytes, swap)};
    }
    case 'u': {
      const std::uint64_t n = dtype.itemsize;
      const std::uint64_t value = n == 1   ? load<std::uint8_t>(bytes, swap)
                                  : n == 2 ? load<std::uint16_t>(bytes, swap)
                                  : n == 4 ? load<std::uint32_t>(bytes, swap)
                                           : load<std::uint64_t>(bytes, swap);
      if (value >> 63 == 0) {
        return {static_cast<std::int64_t>(value)};
      }
      return {value};
    }
    case 'f':
      if (dtype.itemsize == 2) {
        return {from_half<double>(load<std::uint16_t>(bytes, swap))};
      }
      if (dtype.itemsize == 4) {
        return {double{load<float>(bytes, swap)}};
      }
      if (dtype.itemsize == 8) {
        return {load<double>(bytes, swap)};
      }
      break;
    case 'c':
      if (dtype.itemsize == 8) {
        return {Complex{load<float>(bytes, swap), load<float>(bytes + 4, swap)}};
      }
      if (dtype.itemsize == 16) {
        return {Complex{load<double>(bytes, swap), load<double>(bytes + 8, swap)}};
      }
      break;
    case 'S': {
      std::string text(reinterpret_cast<const char*>(bytes), dtype.itemsize);
      text.erase(text.find_last_not_of('\0') + 1);
      return {Bytes{std::move(text)}};
    }
    case 'U': {
      std::string text;
      std::uint64_t length = dtype.itemsize / 4;
      while (length > 0 && load_le<std::uint32_t>(bytes + 4 * (length - 1)) == 0) {
        --length;
      }
      for (std::uint64_t i = 0; i < length; ++i) {
        const auto point = load_le<std::uint32_t>(bytes + 4 * i);
        if (point > 0x10ffff) {
          throw Dropped{"text that is no Unicode"};
        }
        append_utf8(text, point);
      }
      return {std::move(text)};
    }
    default:
      break;
  }
  throw Dropped{fmt::format("of dtype {}", dtype.text())};
}

class ValueBuilder {
 public:
  ValueBuilder(const PickleTree& tree, PayloadBytes& pickle,
               const std::function<void(const std::string&)>& dropped)
      : tree_(tree), pickle_(pickle), dropped_(dropped) {}

  Value build_root(PickleRef ref) {
    try {
      return build(ref, 0);
    } catch (const Dropped& dropped) {
      throw Error(
          ErrorKind::kUnsupported,
          pickle_.fault(0, fmt::format("the pickle is {}, expected plain data", dropped.why))
              .what());
    }
  }

 private:
  Value build(PickleRef ref, std::size_t depth) {
    if (depth > kMostDepth) {
      throw Dropped{fmt::format("nested deeper than {}", kMostDepth)};
    }
    count(1, 0);
    const Node& node = tree_[ref];
    switch (node.kind) {
      case PickleKind::kNone:
        return {};
      case PickleKind::kBool:
        return {node.number != 0};
      case PickleKind::kInteger:
        return {static_cast<std::int64_t>(node.number)};
      case PickleKind::kLong:
        return {BigInt{tree_.text(ref)}};
      case PickleKind::kFloat:
        return {std::bit_cast<double>(node.number)};
      case PickleKind::kText:
        count(0, node.nbytes);
        return {tree_.bytes_of(ref, pickle_)};
      case PickleKind::kBytes:
        count(0, node.nbytes);
        return {Bytes{tree_.bytes_of(ref, pickle_)}};
      case PickleKind::kEncoded:
        count(0, tree_[tree_.items(ref)[0]].nbytes);
        return {Bytes{tree_.bytes_of(ref, pickle_)}};
      case PickleKind::kList:
      case PickleKind::kTuple:
      case PickleKind::kSet:
        return {build_list(tree_.items(ref), depth)};
      case PickleKind::kDict:
        return {build_dict(ref, depth)};
      case PickleKind::kComplex:
        return {Complex{float_of(tree_.items(ref)[0]), float_of(tree_.items(ref)[1])}};
      case PickleKind::kArray:
      case PickleKind::kScalar:
        return build_array(ref, depth);
      default:
        throw Dropped{"an object that only code can make"};
    }
  }

  double float_of(PickleRef ref) const { return std::bit_cast<double>(tree_[ref].number); }

  // What all is bounded is the whole pickle's: a value that is one too many drops itself only.
  void count(std::uint64_t values, std::uint64_t nbytes) {
    if (values > kMostValues - values_ || nbytes > kMostNbytes - nbytes_) {
      throw Dropped{"more than attributes may hold"};
    }
    values_ += values;
    nbytes_ += nbytes;
  }

  // Builds one part of a container; false where it is dropped.
  template <typename Take>
  void build_part(const std::string& place, PickleRef ref, std::size_t depth, const Take& take) {
    const std::size_t before = path_.size();
    path_ += place;
    try {
      take(build(ref, depth + 1));
    } catch (const Dropped& dropped) {
      if (++dropped_count_ <= kMostDropped) {
        dropped_(fmt::format("{} is {}", printable(path_), dropped.why));
      }
    }
    path_.resize(before);
  }

  List build_list(const std::vector<PickleRef>& items, std::size_t depth) {
    List list;
    for (std::size_t i = 0; i < items.size(); ++i) {
      build_part(fmt::format("[{}]", i), items[i], depth,
                 [&](Value value) { list.push_back(std::move(value)); });
      if (dropped_count_ > kMostDropped) {
        break;
      }
    }
    return list;
  }

  // Of equal keys the last one counts, in the place of the first.
  Dict build_dict(PickleRef ref, std::size_t depth) {
    const auto& items = tree_.items(ref);
    Dict dict;
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i + 1 < items.size() && dropped_count_ <= kMostDropped; i += 2) {
      if (tree_[items[i]].kind != PickleKind::kText) {
        build_part("[a key]", items[i], kMostDepth, [](const Value&) {});
        continue;
      }
      const Value key = build(items[i], depth);
      const std::string& name = std::get<std::string>(key.v);
      build_part((path_.empty() ? "" : ".") + name.substr(0, 256), items[i + 1], depth,
                 [&](Value value) {
                   const auto [place, is_new] = places.emplace(name, dict.size());
                   if (is_new) {
                     dict.push_back({name, std::move(value)});
                   } else {
                     dict[place->second].value = std::move(value);
                   }
                 });
    }
    return dict;
  }

  Value build_array(PickleRef ref, std::size_t depth) {
    const PickleTree::Array& array = tree_.array(ref);
    const std::uint64_t elements = *element_count(array.shape);
    if (array.dtype.kind == 'O') {
      const auto& items = tree_.items(array.data);
      if (array.shape.empty()) {
        return build(items[0], depth + 1);
      }
      return {build_list(items, depth)};
    }
    const PickleItem item = describe_pickle(tree_, ref, pickle_);
    const auto nbytes = checked_product(elements, item.dtype.itemsize);
    count(elements, nbytes);
    std::vector<std::byte> bytes(nbytes);
    build_item(tree_, ref, pickle_, item.dtype, bytes);
    const std::byte* at = bytes.data();
    return nest(array.shape, 0, item.dtype, at);
  }

  static std::uint64_t checked_product(std::uint64_t elements, std::uint64_t itemsize) {
    if (elements > kMostNbytes || elements * itemsize > kMostNbytes) {
      throw Dropped{"more than attributes may hold"};
    }
    return elements * itemsize;
  }

  // Rows that hold nothing count as well.
  Value nest(const Shape& shape, std::size_t axis, const DType& dtype, const std::byte*& at) {
    if (axis == shape.size()) {
      Value value = element_value(dtype, at);
      at += dtype.itemsize;
      return value;
    }
    List list;
    for (std::uint64_t i = 0; i < shape[axis]; ++i) {
      count(1, 0);
      list.push_back(nest(shape, axis + 1, dtype, at));
    }
    return {std::move(list)};
  }

  // More need not be named.
  static constexpr std::size_t kMostDropped = 100;

  const PickleTree& tree_;
  PayloadBytes& pickle_;
  const std::function<void(const std::string&)>& dropped_;
  std::string path_;
  std::uint64_t values_ = 0;
  std::uint64_t nbytes_ = 0;
  std::size_t dropped_count_ = 0;
};

}  // namespace

Value read_pickle(std::span<const std::byte> pickle, const std::string& name,
                  const std::function<void(const std::string&)>& dropped) {
  MemoryBytes bytes(pickle, name);
  const PickleTree tree = parse_pickle(bytes);
  return ValueBuilder(tree, bytes, dropped).build_root(tree.root());
}

Value read_attrs_npy(std::span<const std::byte> file, const std::string& name,
                     const std::function<void(const std::string&)>& dropped) {
  MemoryBytes bytes(file, name);
  // The header of an object array is not parsed as others are, which may hold no objects: what
  // counts is where it ends.
  const auto header_nbytes = npy_header_nbytes(file.first(std::min<std::size_t>(12, file.size())));
  if (!header_nbytes || *header_nbytes > file.size()) {
    throw bytes.fault(0, "the file does not begin as a .npy file; it is damaged");
  }
  const std::string_view header(reinterpret_cast<const char*>(file.data()), *header_nbytes);
  if (header.find("'|O'") == std::string_view::npos) {
    throw Error(ErrorKind::kUnsupported,
                bytes.fault(0, "the array holds numbers, expected a dict of attributes").what());
  }
  const PickleTree tree = parse_pickle(bytes, *header_nbytes);
  return ValueBuilder(tree, bytes, dropped).build_root(tree.root());
}

}  // namespace npyfs
