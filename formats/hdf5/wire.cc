// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>
#include <variant>

#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

enum class Tag : std::uint8_t {
  kNone,
  kFalse,
  kTrue,
  kInt,
  kUnsigned,
  kDouble,
  kComplex,
  kText,
  kBytes,
  kList,
  kDict,
};

constexpr std::uint8_t kMostRank = 32;
constexpr int kMostDepth = 40;

template <typename T>
void append(std::vector<std::byte>& bytes, T number) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof number);
  std::memcpy(bytes.data() + at, &number, sizeof number);
}

}  // namespace

WireFrameWriter& WireFrameWriter::add_u8(std::uint8_t number) {
  append(bytes_, number);
  return *this;
}

WireFrameWriter& WireFrameWriter::add_u32(std::uint32_t number) {
  append(bytes_, number);
  return *this;
}

WireFrameWriter& WireFrameWriter::add_u64(std::uint64_t number) {
  append(bytes_, number);
  return *this;
}

WireFrameWriter& WireFrameWriter::add_bytes(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

WireFrameWriter& WireFrameWriter::add_text(std::string_view text) {
  add_u32(static_cast<std::uint32_t>(text.size()));
  return add_bytes(std::as_bytes(std::span(text)));
}

WireFrameWriter& WireFrameWriter::add_shape(const Shape& shape) {
  add_u8(static_cast<std::uint8_t>(shape.size()));
  for (const std::uint64_t length : shape) {
    add_u64(length);
  }
  return *this;
}

WireFrameWriter& WireFrameWriter::add_value(const Value& value) {
  const auto tag = [&](Tag what) -> WireFrameWriter& {
    return add_u8(static_cast<std::uint8_t>(what));
  };
  std::visit(
      [&](const auto& it) {
        using T = std::decay_t<decltype(it)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          tag(Tag::kNone);
        } else if constexpr (std::is_same_v<T, bool>) {
          tag(it ? Tag::kTrue : Tag::kFalse);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          tag(Tag::kInt).add_u64(static_cast<std::uint64_t>(it));
        } else if constexpr (std::is_same_v<T, std::uint64_t>) {
          tag(Tag::kUnsigned).add_u64(it);
        } else if constexpr (std::is_same_v<T, double>) {
          tag(Tag::kDouble).add_u64(std::bit_cast<std::uint64_t>(it));
        } else if constexpr (std::is_same_v<T, Complex>) {
          tag(Tag::kComplex).add_u64(std::bit_cast<std::uint64_t>(it.real));
          add_u64(std::bit_cast<std::uint64_t>(it.imaginary));
        } else if constexpr (std::is_same_v<T, std::string>) {
          tag(Tag::kText).add_text(it);
        } else if constexpr (std::is_same_v<T, Bytes>) {
          tag(Tag::kBytes).add_text(it.bytes);
        } else if constexpr (std::is_same_v<T, List>) {
          tag(Tag::kList).add_u32(static_cast<std::uint32_t>(it.size()));
          for (const Value& item : it) {
            add_value(item);
          }
        } else if constexpr (std::is_same_v<T, Dict>) {
          tag(Tag::kDict).add_u32(static_cast<std::uint32_t>(it.size()));
          for (const DictEntry& entry : it) {
            add_text(entry.name).add_value(entry.value);
          }
        } else {
          tag(Tag::kNone);  // integers beyond 64 bits: HDF5 has none that the child would read
        }
      },
      value.v);
  return *this;
}

std::span<const std::byte> WireFrameWriter::finish() {
  const auto nbytes = static_cast<std::uint32_t>(bytes_.size() - sizeof(std::uint32_t));
  std::memcpy(bytes_.data(), &nbytes, sizeof nbytes);
  return bytes_;
}

Error WireFrameReader::wrong(std::string_view text) const {
  return file_error(
      ErrorKind::kCorrupt, name_,
      fmt::format("what the HDF5 library says of it {}; the file is damaged or crafted", text));
}

std::span<const std::byte> WireFrameReader::take(std::size_t nbytes) {
  if (nbytes > left_.size()) {
    throw wrong(fmt::format("ends {} bytes too early", nbytes - left_.size()));
  }
  const auto taken = left_.first(nbytes);
  left_ = left_.subspan(nbytes);
  return taken;
}

std::uint8_t WireFrameReader::take_u8() { return std::to_integer<std::uint8_t>(take(1)[0]); }

std::uint32_t WireFrameReader::take_u32() { return load_le<std::uint32_t>(take(4).data()); }

std::uint64_t WireFrameReader::take_u64() { return load_le<std::uint64_t>(take(8).data()); }

std::string WireFrameReader::take_text() {
  const auto bytes = take(take_u32());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Shape WireFrameReader::take_shape() {
  const std::uint8_t rank = take_u8();
  if (rank > kMostRank) {
    throw wrong(fmt::format("has {} dimensions, expected at most {}", rank, kMostRank));
  }
  Shape shape;
  for (std::uint8_t axis = 0; axis < rank; ++axis) {
    shape.push_back(take_u64());
  }
  return shape;
}

std::uint32_t WireFrameReader::take_count(std::size_t least_nbytes) {
  const std::uint32_t count = take_u32();
  if (count > left_.size() / least_nbytes) {
    throw wrong(fmt::format("has a list of {} in {} bytes", count, left_.size()));
  }
  return count;
}

Value WireFrameReader::take_value() { return take_value(0); }

Value WireFrameReader::take_value(int depth) {
  if (depth > kMostDepth) {
    throw wrong(fmt::format("has attributes nested deeper than {}", kMostDepth));
  }
  // A frame has the values of one object; names and dictionaries are few beside them.
  if (++values_taken_ > 2 * kMostAttributeValues) {
    throw wrong(fmt::format("has attributes of more than {} values", 2 * kMostAttributeValues));
  }
  const auto take_double = [&] { return std::bit_cast<double>(take_u64()); };
  switch (static_cast<Tag>(take_u8())) {
    case Tag::kNone:
      return {};
    case Tag::kFalse:
      return {false};
    case Tag::kTrue:
      return {true};
    case Tag::kInt:
      return {static_cast<std::int64_t>(take_u64())};
    case Tag::kUnsigned:
      return {take_u64()};
    case Tag::kDouble:
      return {take_double()};
    case Tag::kComplex: {
      const double real = take_double();
      return {Complex{real, take_double()}};
    }
    case Tag::kText:
      return {take_text()};
    case Tag::kBytes:
      return {Bytes{take_text()}};
    case Tag::kList: {
      List list;
      for (std::uint32_t left = take_count(1); left > 0; --left) {
        list.push_back(take_value(depth + 1));
      }
      return {std::move(list)};
    }
    case Tag::kDict: {
      Dict dict;
      for (std::uint32_t left = take_count(5); left > 0; --left) {
        std::string name = take_text();
        dict.push_back({std::move(name), take_value(depth + 1)});
      }
      return {std::move(dict)};
    }
  }
  throw wrong("has an attribute of no known kind");
}

void WireFrameReader::require_end() const {
  if (!left_.empty()) {
    throw wrong(fmt::format("is followed by {} bytes too many", left_.size()));
  }
}

}  // namespace npyfs
