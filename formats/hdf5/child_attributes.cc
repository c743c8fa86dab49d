// SPDX-License-Identifier: Apache-2.0
//
// h5py: h5py/_hl/attrs.py says what an attribute is to Python.

#include "formats/hdf5/child_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/utf8.h"
#include "formats/hdf5/child_type.h"

namespace npyfs {

namespace {

// In memory, of one attribute.
constexpr std::uint64_t kMostNbytes = std::uint64_t{64} << 20;
constexpr int kMostDepth = 32;

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void require_within(const AttributeBudget& budget, std::uint64_t values, std::uint64_t nbytes) {
  if (values > budget.values || nbytes > budget.nbytes) {
    throw ChildError(fmt::format("those of a file may hold {} values and {} bytes of text",
                                 kMostAttributeValues, kMostAttributeNbytes));
  }
}

// Elements in memory, of a native type. Throws ChildError beyond the budget.
class ElementReader {
 public:
  explicit ElementReader(AttributeBudget& budget) : budget_(budget) {}

  // Nothing for what is no data.
  std::optional<Value> read(hid_t type, const std::byte* at, int depth = 0) {
    if (depth > kMostDepth) {
      return std::nullopt;
    }
    spend(1, 0);
    switch (H5Tget_class(type)) {
      case H5T_INTEGER:
      case H5T_BITFIELD:
        return integer(type, at);
      case H5T_FLOAT:
        return floating(type, at);
      case H5T_STRING:
        return string(type, at);
      case H5T_OPAQUE:
        spend(0, H5Tget_size(type));
        return Value{Bytes{{reinterpret_cast<const char*>(at), H5Tget_size(type)}}};
      case H5T_COMPOUND:
        return compound(type, at, depth);
      case H5T_ENUM: {
        if (is_bool_enum(type)) {
          return Value{load<signed char>(at) != 0};
        }
        const H5Type base(H5Tget_super(type), "look at the numbers of an enumeration");
        return read(base.id(), at, depth + 1);
      }
      case H5T_ARRAY:
        return array(type, at, depth);
      case H5T_VLEN: {
        const auto sequence = load<hvl_t>(at);
        const H5Type base(H5Tget_super(type), "look at the items of a sequence");
        return items(base.id(), static_cast<const std::byte*>(sequence.p), sequence.len, depth);
      }
      default:
        return std::nullopt;
    }
  }

  // `shape` deep, in C order.
  std::optional<Value> nested(hid_t type, const std::byte* at, std::span<const hsize_t> shape,
                              int depth) {
    if (shape.empty()) {
      return read(type, at, depth);
    }
    std::uint64_t inner = H5Tget_size(type);
    for (const hsize_t length : shape.subspan(1)) {
      inner *= length;
    }
    require_within(budget_, shape[0], 0);
    spend(1, 0);
    List list;
    for (hsize_t i = 0; i < shape[0]; ++i) {
      auto item = nested(type, at + i * inner, shape.subspan(1), depth);
      if (!item) {
        return std::nullopt;
      }
      list.push_back(std::move(*item));
    }
    return Value{std::move(list)};
  }

 private:
  void spend(std::uint64_t values, std::uint64_t nbytes) {
    require_within(budget_, values, nbytes);
    budget_.values -= values;
    budget_.nbytes -= nbytes;
  }

  static std::optional<Value> integer(hid_t type, const std::byte* at) {
    const bool is_signed = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) != H5T_SGN_NONE;
    switch (H5Tget_size(type)) {
      case 1:
        return is_signed ? Value{std::int64_t{load<std::int8_t>(at)}}
                         : Value{std::int64_t{load<std::uint8_t>(at)}};
      case 2:
        return is_signed ? Value{std::int64_t{load<std::int16_t>(at)}}
                         : Value{std::int64_t{load<std::uint16_t>(at)}};
      case 4:
        return is_signed ? Value{std::int64_t{load<std::int32_t>(at)}}
                         : Value{std::int64_t{load<std::uint32_t>(at)}};
      case 8:
        return is_signed ? Value{load<std::int64_t>(at)} : Value{load<std::uint64_t>(at)};
      default:
        return std::nullopt;
    }
  }

  static std::optional<double> number(hid_t type, const std::byte* at) {
    switch (H5Tget_size(type)) {
      case sizeof(float):
        return load<float>(at);
      case sizeof(double):
        return load<double>(at);
      case sizeof(long double):
        return static_cast<double>(load<long double>(at));
      default:
        return std::nullopt;
    }
  }

  static std::optional<Value> floating(hid_t type, const std::byte* at) {
    const auto value = number(type, at);
    return value ? std::optional<Value>(Value{*value}) : std::nullopt;
  }

  // As h5py has it, strings of one length are bytes, unless they say that they are UTF-8.
  std::optional<Value> string(hid_t type, const std::byte* at) {
    const bool any_length = H5Tis_variable_str(type) > 0;
    std::string text;
    if (any_length) {
      const char* const chars = load<const char*>(at);
      spend(0, chars != nullptr ? std::strlen(chars) : 0);
      text = chars != nullptr ? chars : "";
    } else {
      spend(0, H5Tget_size(type));
      text.assign(reinterpret_cast<const char*>(at), H5Tget_size(type));
      const char padding = H5Tget_strpad(type) == H5T_STR_SPACEPAD ? ' ' : '\0';
      text.resize(text.find_last_not_of(padding) + 1);
      if (H5Tget_strpad(type) == H5T_STR_NULLTERM) {
        text.resize(std::min(text.size(), text.find('\0')));
      }
    }
    if ((any_length || H5Tget_cset(type) == H5T_CSET_UTF8) && is_utf8(text)) {
      return Value{std::move(text)};
    }
    return Value{Bytes{std::move(text)}};
  }

  std::optional<Value> compound(hid_t type, const std::byte* at, int depth) {
    const int count = H5Tget_nmembers(type);
    List members;
    const bool complex = is_complex(type);
    for (unsigned i = 0; count > 0 && i < static_cast<unsigned>(count); ++i) {
      const H5Type member(H5Tget_member_type(type, i), "look at a member of a compound type");
      auto value = read(member.id(), at + H5Tget_member_offset(type, i), depth + 1);
      if (!value) {
        return std::nullopt;
      }
      members.push_back(std::move(*value));
    }
    if (complex) {
      return Value{Complex{std::get<double>(members[0].v), std::get<double>(members[1].v)}};
    }
    return Value{std::move(members)};
  }

  std::optional<Value> array(hid_t type, const std::byte* at, int depth) {
    const H5Type base(H5Tget_super(type), "look at the items of an array type");
    std::vector<hsize_t> shape(static_cast<std::size_t>(std::max(H5Tget_array_ndims(type), 0)));
    if (H5Tget_array_dims2(type, shape.data()) < 0) {
      return std::nullopt;
    }
    return nested(base.id(), at, shape, depth + 1);
  }

  std::optional<Value> items(hid_t type, const std::byte* at, std::size_t count, int depth) {
    const hsize_t length = at != nullptr ? count : 0;
    return nested(type, at, {&length, 1}, depth + 1);
  }

  AttributeBudget& budget_;
};

// Gives back what the library has allocated for elements of any length.
struct Reclaim {
  hid_t type;
  hid_t space;
  void* elements;
  ~Reclaim() { H5Dvlen_reclaim(type, space, H5P_DEFAULT, elements); }
};

// Nothing for what is no data.
std::optional<Value> read_attribute(hid_t attribute, AttributeBudget& budget) {
  const H5Space space(H5Aget_space(attribute), "look at the shape");
  if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
    return Value{};
  }
  const H5Type stored(H5Aget_type(attribute), "look at the type");
  if (H5Tdetect_class(stored.id(), H5T_REFERENCE) > 0) {
    return std::nullopt;
  }
  const H5Type native(H5Tget_native_type(stored.id(), H5T_DIR_ASCEND), "translate the type");
  std::vector<hsize_t> shape(
      static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space.id()), 0)));
  H5Sget_simple_extent_dims(space.id(), shape.data(), nullptr);
  const std::uint64_t elements =
      element_count({shape.begin(), shape.end()}).value_or(kMostNbytes + 1);
  const std::uint64_t nbytes =
      checked_mul(elements, H5Tget_size(native.id())).value_or(kMostNbytes + 1);
  const bool is_text =
      H5Tget_class(native.id()) == H5T_STRING && H5Tis_variable_str(native.id()) == 0;
  require_within(budget, elements, is_text ? nbytes : 0);
  if (nbytes > kMostNbytes) {
    throw ChildError(fmt::format("it takes more than {} bytes", kMostNbytes));
  }
  std::vector<std::byte> bytes(std::max<std::uint64_t>(nbytes, 1));
  if (H5Aread(attribute, native.id(), bytes.data()) < 0) {
    throw hdf5_failed("cannot read it");
  }
  const Reclaim reclaim{native.id(), space.id(), bytes.data()};
  return ElementReader(budget).nested(native.id(), bytes.data(), shape, 0);
}

// Only gathers: nothing may be thrown through the library.
herr_t gather_name(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

}  // namespace

Dict read_attributes(hid_t object, AttributeBudget& budget,
                     std::vector<LeftOutAttribute>& left_out) {
  std::vector<std::string> names;
  hsize_t next = 0;
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &next, gather_name, &names) < 0) {
    left_out.push_back({"*", "not all of their names can be read"});
  }
  Dict attributes;
  for (const std::string& name : names) {
    AttributeBudget left = budget;
    try {
      const H5Attribute attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), "open it");
      if (auto value = read_attribute(attribute.id(), left)) {
        attributes.push_back({name, std::move(*value)});
        budget = left;
      } else {
        left_out.push_back({name, ""});
      }
    } catch (const ChildError& error) {
      left_out.push_back({name, error.what()});
    } catch (const std::bad_alloc&) {
      left_out.push_back({name, "it needs more memory than the HDF5 library may have"});
    }
  }
  return attributes;
}

}  // namespace npyfs
