// SPDX-License-Identifier: Apache-2.0
//
// h5py: h5py/h5t.pyx says which HDF5 type is which numpy type.

#include "formats/hdf5/child_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "formats/bytes/npy_header.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostNesting = 32;

// A string that libhdf5 allocated.
std::string take_h5_string(char* text) {
  std::string taken = text != nullptr ? text : "";
  H5free_memory(text);
  return taken;
}

// '<', '>' or '|'; nothing for VAX and mixed orders.
std::optional<char> order_of(hid_t type) {
  if (H5Tget_size(type) == 1) {
    return '|';
  }
  switch (H5Tget_order(type)) {
    case H5T_ORDER_LE:
      return '<';
    case H5T_ORDER_BE:
      return '>';
    default:
      return std::nullopt;
  }
}

bool has_number_size(hid_t type) {
  const std::size_t nbytes = H5Tget_size(type);
  return nbytes == 1 || nbytes == 2 || nbytes == 4 || nbytes == 8;
}

hid_t standard_integer(hid_t type, char order) {
  const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
  const bool big = order == '>';
  switch (H5Tget_size(type)) {
    case 1:
      return is_signed ? H5T_STD_I8LE : H5T_STD_U8LE;
    case 2:
      return is_signed ? (big ? H5T_STD_I16BE : H5T_STD_I16LE)
                       : (big ? H5T_STD_U16BE : H5T_STD_U16LE);
    case 4:
      return is_signed ? (big ? H5T_STD_I32BE : H5T_STD_I32LE)
                       : (big ? H5T_STD_U32BE : H5T_STD_U32LE);
    default:
      return is_signed ? (big ? H5T_STD_I64BE : H5T_STD_I64LE)
                       : (big ? H5T_STD_U64BE : H5T_STD_U64LE);
  }
}

// IEEE 754 binary16, 32 and 64: where their fields lie.
bool is_ieee(hid_t type) {
  struct Layout {
    std::size_t nbytes, sign, exponent, exponent_bits, mantissa, mantissa_bits, bias;
  };
  constexpr std::array<Layout, 3> kLayouts = {
      {{2, 15, 10, 5, 0, 10, 15}, {4, 31, 23, 8, 0, 23, 127}, {8, 63, 52, 11, 0, 52, 1023}}};
  std::size_t sign = 0;
  std::size_t exponent = 0;
  std::size_t exponent_bits = 0;
  std::size_t mantissa = 0;
  std::size_t mantissa_bits = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) {
    return false;
  }
  return std::any_of(kLayouts.begin(), kLayouts.end(), [&](const Layout& layout) {
    return H5Tget_size(type) == layout.nbytes && H5Tget_offset(type) == 0 && sign == layout.sign &&
           exponent == layout.exponent && exponent_bits == layout.exponent_bits &&
           mantissa == layout.mantissa && mantissa_bits == layout.mantissa_bits &&
           H5Tget_ebias(type) == layout.bias && H5Tget_norm(type) == H5T_NORM_IMPLIED;
  });
}

// h5py marks dates as opaque: "NUMPY:<M8[s]".
bool is_date_code(std::string_view code) {
  if (code.size() < 3 || (code[0] != '<' && code[0] != '>') || (code[1] != 'M' && code[1] != 'm') ||
      code[2] != '8') {
    return false;
  }
  const std::string_view unit = code.substr(3);
  const bool plain = std::all_of(unit.begin(), unit.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '[' || c == ']' || c == '/';
  });
  return plain && (unit.empty() || (unit.front() == '[' && unit.back() == ']'));
}

class Translator {
 public:
  explicit Translator(std::string& why) : why_(why) {}

  std::optional<NpyType> translate(hid_t type, std::size_t depth) {
    if (depth > kMostNesting) {
      return refuse("a type nested too deeply");
    }
    switch (H5Tget_class(type)) {
      case H5T_INTEGER:
        return integer(type);
      case H5T_FLOAT:
        return floating(type);
      case H5T_STRING:
        return string(type);
      case H5T_BITFIELD:
        return bitfield(type);
      case H5T_OPAQUE:
        return opaque(type);
      case H5T_COMPOUND:
        return compound(type, depth);
      case H5T_ENUM:
        return enumeration(type, depth);
      case H5T_ARRAY:
        return array(type, depth);
      case H5T_VLEN:
        return sequence(type, depth);
      case H5T_REFERENCE:
        return refuse("references");
      default:
        return refuse("a type that npyfs does not know");
    }
  }

 private:
  std::nullopt_t refuse(const std::string& why) {
    why_ = why;
    return std::nullopt;
  }

  static NpyType fixed(hid_t type, const std::string& code) {
    NpyType npy;
    npy.descr = "'" + code + "'";
    npy.itemsize = static_cast<std::uint32_t>(H5Tget_size(type));
    npy.memory = H5Type(H5Tcopy(type), "copy a type");
    return npy;
  }

  std::optional<NpyType> integer(hid_t type) {
    const auto order = order_of(type);
    if (!order || !has_number_size(type)) {
      return refuse(fmt::format("integers of {} bytes in an order that numpy does not have",
                                H5Tget_size(type)));
    }
    const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
    NpyType npy =
        fixed(type, fmt::format("{}{}{}", *order, is_signed ? 'i' : 'u', H5Tget_size(type)));
    npy.is_raw = H5Tget_precision(type) == 8 * H5Tget_size(type) && H5Tget_offset(type) == 0;
    if (!npy.is_raw) {
      npy.memory = H5Type(H5Tcopy(standard_integer(type, *order)), "copy a type");
    }
    return npy;
  }

  std::optional<NpyType> floating(hid_t type) {
    const auto order = order_of(type);
    if (!order || !is_ieee(type)) {
      return refuse(
          fmt::format("floats of {} bytes that numpy does not have everywhere", H5Tget_size(type)));
    }
    return fixed(type, fmt::format("{}f{}", *order, H5Tget_size(type)));
  }

  std::optional<NpyType> string(hid_t type) {
    if (H5Tis_variable_str(type) > 0) {
      NpyType npy;
      npy.kind = NpyType::Kind::kText;
      npy.is_raw = false;
      npy.memory = H5Type(H5Tcopy(type), "copy a type");
      return npy;
    }
    NpyType npy = fixed(type, fmt::format("|S{}", H5Tget_size(type)));
    // numpy knows zeroes at the end, no blanks.
    if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) {
      npy.is_raw = false;
      H5Tset_strpad(npy.memory.id(), H5T_STR_NULLPAD);
    }
    return npy;
  }

  std::optional<NpyType> bitfield(hid_t type) {
    const auto order = order_of(type);
    if (!order || !has_number_size(type)) {
      return refuse(fmt::format("bit fields of {} bytes", H5Tget_size(type)));
    }
    return fixed(type, fmt::format("{}u{}", *order, H5Tget_size(type)));
  }

  std::optional<NpyType> opaque(hid_t type) {
    constexpr std::string_view kNumpy = "NUMPY:";
    const std::string tag = take_h5_string(H5Tget_tag(type));
    if (tag.starts_with(kNumpy) && H5Tget_size(type) == 8 &&
        is_date_code(std::string_view(tag).substr(kNumpy.size()))) {
      return fixed(type, tag.substr(kNumpy.size()));
    }
    return fixed(type, fmt::format("|V{}", H5Tget_size(type)));
  }

  std::optional<NpyType> enumeration(hid_t type, std::size_t depth) {
    if (is_bool_enum(type)) {
      return fixed(type, "|b1");
    }
    const H5Type base(H5Tget_super(type), "look at the numbers of an enumeration");
    auto npy = translate(base.id(), depth + 1);
    if (npy && npy->is_raw) {
      npy->memory = H5Type(H5Tcopy(type), "copy a type");
    }
    return npy;
  }

  std::optional<NpyType> array(hid_t type, std::size_t depth) {
    const H5Type base(H5Tget_super(type), "look at the items of an array type");
    auto npy = translate(base.id(), depth + 1);
    if (!npy) {
      return npy;
    }
    if (npy->kind != NpyType::Kind::kFixed) {
      return refuse("arrays of items of any length");
    }
    const int rank = H5Tget_array_ndims(type);
    std::vector<hsize_t> dims(static_cast<std::size_t>(std::max(rank, 0)));
    if (rank < 0 || H5Tget_array_dims2(type, dims.data()) < 0) {
      throw hdf5_failed("cannot look at the axes of an array type");
    }
    npy->memory =
        H5Type(H5Tarray_create2(npy->memory.id(), static_cast<unsigned>(rank), dims.data()),
               "make an array type");
    npy->extra.insert(npy->extra.begin(), dims.begin(), dims.end());
    return npy;
  }

  std::optional<NpyType> sequence(hid_t type, std::size_t depth) {
    if (depth > 0) {
      return refuse("sequences of any length within another type");
    }
    const H5Type base(H5Tget_super(type), "look at the items of a sequence");
    auto npy = translate(base.id(), depth + 1);
    if (npy && (npy->kind != NpyType::Kind::kFixed || !npy->extra.empty())) {
      return refuse("sequences of text, arrays or sequences");
    }
    if (npy) {
      npy->kind = NpyType::Kind::kSequence;
      npy->is_raw = false;
    }
    return npy;
  }

  struct Member {
    std::string name;
    std::size_t offset = 0;
    NpyType type;
  };

  std::optional<std::vector<Member>> members_of(hid_t type, std::size_t depth) {
    std::vector<Member> members;
    const int count = H5Tget_nmembers(type);
    for (unsigned i = 0; count > 0 && i < static_cast<unsigned>(count); ++i) {
      const H5Type of_member(H5Tget_member_type(type, i), "look at a member of a compound type");
      auto npy = translate(of_member.id(), depth + 1);
      if (!npy) {
        return std::nullopt;
      }
      if (npy->kind != NpyType::Kind::kFixed) {
        return refuse("compounds with text or sequences of any length");
      }
      members.push_back({take_h5_string(H5Tget_member_name(type, i)), H5Tget_member_offset(type, i),
                         std::move(*npy)});
    }
    std::stable_sort(members.begin(), members.end(),
                     [](const Member& a, const Member& b) { return a.offset < b.offset; });
    return members;
  }

  std::optional<NpyType> compound(hid_t type, std::size_t depth) {
    if (is_complex(type)) {
      const H5Type part(H5Tget_member_type(type, 0), "look at a member of a compound type");
      return fixed(type, fmt::format("{}c{}", *order_of(part.id()), H5Tget_size(type)));
    }
    const auto members = members_of(type, depth);
    if (!members) {
      return std::nullopt;
    }
    const std::size_t nbytes = H5Tget_size(type);
    NpyType npy;
    npy.itemsize = static_cast<std::uint32_t>(nbytes);
    npy.memory = H5Type(H5Tcreate(H5T_COMPOUND, nbytes), "make a compound type");
    std::size_t at = 0;
    const auto fill_up_to = [&](std::size_t offset) {
      if (offset > at) {
        npy.descr += fmt::format("('', '|V{}'), ", offset - at);
      }
    };
    for (const Member& member : *members) {
      const std::uint64_t member_nbytes = member.type.nbytes();
      if (member.offset < at || member_nbytes > nbytes - member.offset) {
        return refuse("compounds whose members overlap");
      }
      fill_up_to(member.offset);
      npy.descr += fmt::format("({}, {}", quoted(member.name), member.type.descr);
      if (!member.type.extra.empty()) {
        npy.descr += ", " + shape_text(member.type.extra);
      }
      npy.descr += "), ";
      npy.is_raw = npy.is_raw && member.type.is_raw;
      if (H5Tinsert(npy.memory.id(), member.name.c_str(), member.offset, member.type.memory.id()) <
          0) {
        throw hdf5_failed("cannot make a compound type");
      }
      at = member.offset + member_nbytes;
    }
    fill_up_to(nbytes);
    if (npy.descr.empty()) {
      return refuse("compounds of no members");
    }
    npy.descr = "[" + npy.descr.substr(0, npy.descr.size() - 2) + "]";
    if (npy.is_raw) {
      npy.memory = H5Type(H5Tcopy(type), "copy a type");
    }
    return npy;
  }

  std::string& why_;
};

}  // namespace

std::uint64_t NpyType::nbytes() const { return memory.is_open() ? H5Tget_size(memory.id()) : 0; }

std::optional<NpyType> to_npy_type(hid_t type, std::string& why) {
  auto npy = Translator(why).translate(type, 0);
  if (npy && npy->kind == NpyType::Kind::kFixed &&
      H5Tget_size(type) > std::numeric_limits<std::int32_t>::max()) {
    why = "elements of 2 GiB and more";
    return std::nullopt;
  }
  return npy;
}

bool is_bool_enum(hid_t type) {
  if (H5Tget_class(type) != H5T_ENUM || H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) {
    return false;
  }
  std::map<std::string, signed char> members;
  for (unsigned i = 0; i < 2; ++i) {
    signed char value = 0;
    if (H5Tget_member_value(type, i, &value) < 0) {
      return false;
    }
    members[take_h5_string(H5Tget_member_name(type, i))] = value;
  }
  return members == std::map<std::string, signed char>{{"FALSE", 0}, {"TRUE", 1}};
}

bool is_complex(hid_t type) {
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2 ||
      take_h5_string(H5Tget_member_name(type, 0)) != "r" ||
      take_h5_string(H5Tget_member_name(type, 1)) != "i") {
    return false;
  }
  const H5Type real(H5Tget_member_type(type, 0), "look at a member of a compound type");
  const H5Type imaginary(H5Tget_member_type(type, 1), "look at a member of a compound type");
  const std::size_t nbytes = H5Tget_size(real.id());
  return H5Tget_class(real.id()) == H5T_FLOAT && nbytes >= 4 && is_ieee(real.id()) &&
         order_of(real.id()).has_value() && H5Tequal(real.id(), imaginary.id()) > 0 &&
         H5Tget_member_offset(type, 0) == 0 && H5Tget_member_offset(type, 1) == nbytes &&
         H5Tget_size(type) == 2 * nbytes;
}

}  // namespace npyfs
