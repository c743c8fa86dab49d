// SPDX-License-Identifier: Apache-2.0
//
// The preamble of a .npy file, printed as numpy 1.24 prints it, byte for byte, and parsed as any
// numpy writes it. numpy: numpy/lib/format.py.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/bytes/dtype.h"

namespace npyfs {

struct NpyHeader {
  DType dtype;
  Shape shape;
  bool fortran_order = false;
  // Bytes before the data.
  std::uint64_t nbytes = 0;
};

// `text` as a literal of Python, for the names and codes of a descr: near enough to repr for
// parse_npy_header, which spells it anew.
std::string quoted(std::string_view text);

// The preamble np.save writes for this array. `align` > 64 pads further, so that the data begins at
// a multiple of it (a power of two); 64 is numpy's own.
std::string print_npy_header(const DType& dtype, const Shape& shape, bool fortran_order,
                             std::uint64_t align = 64);

// Whether `bytes` begin as a .npy file does.
bool is_npy(std::span<const std::byte> bytes);

// How many bytes parse_npy_header needs, from the first 12 of the file; nothing where these are not
// the start of a .npy file. Never more than 16 MiB; what a longer header or an unknown version
// needs is unknown, and parse_npy_header says so when it is given these bytes.
std::optional<std::uint64_t> npy_header_nbytes(std::span<const std::byte> first_bytes);

// Parses a complete preamble at the beginning of `bytes`. `name` and `base_offset` place errors
// (kCorrupt; kUnsupported for object arrays, which would have to be unpickled). Checks that the
// data's size fits 63 bits; not that the data is there. The dtype is spelt as numpy spells it, so
// that printing what was parsed gives numpy's own text.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name,
                           std::uint64_t base_offset);

}  // namespace npyfs
