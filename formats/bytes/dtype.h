// SPDX-License-Identifier: Apache-2.0
//
// numpy's dtypes and shapes, as far as a .npy header needs them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

using Shape = std::vector<std::uint64_t>;

// Product of the dimensions (1 for rank 0); nothing where it exceeds 63 bits.
std::optional<std::uint64_t> element_count(const Shape& shape);

// Elements of one row along axis 0: the product of the other dimensions. Rank 0 has one.
std::uint64_t row_elements(const Shape& shape);

// "(3, 4)", "(5,)", "()": as Python prints a tuple.
std::string shape_text(const Shape& shape);

// An element type. Value type; equality is equality of `descr`.
struct DType {
  // As it stands in a .npy header, that is as Python prints it: '<f4' with its quotes, or a list
  // of tuples for a structured type.
  std::string descr;
  std::uint32_t itemsize = 0;
  // numpy's kind letter: b i u f c S U V M m.
  char kind = 'V';

  bool operator==(const DType& other) const { return descr == other.descr; }

  // A simple type from its numpy code without quotes: "<f4", "|u1", "<U5".
  static DType simple(std::string_view code);
  // What users type after --dtype: "float32", "<f4", "f4", "uint8", "bool", "S7" and so on. Native
  // order is little-endian. Nothing where numpy would not understand it or it is an object type.
  static std::optional<DType> from_user(std::string_view text);

  // Without the quotes for a simple type ("<f4"), else `descr`; for `info` and xattrs.
  std::string text() const;
};

}  // namespace npyfs
