// SPDX-License-Identifier: Apache-2.0
//
// The values of options. All functions throw kUsage naming `option` ("--shape") and what they
// expected.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/arrays/dataset.h"
#include "formats/bytes/dtype.h"
#include "formats/bytes/value.h"

namespace npyfs {

// "image/a%2Fb.c=float32" at the first '='; neither the name nor the '=' may be missing.
std::pair<std::string, std::string> parse_assignment(std::string_view option,
                                                     const std::string& text);

// "4096", "64K", "1.5G": bytes, with K, M, G, T as powers of 1024.
std::uint64_t parse_nbytes(std::string_view option, std::string_view text);

std::uint64_t parse_count(std::string_view option, std::string_view text, std::uint64_t most);

// "3,224,224"; "" and "()" are a scalar's.
Shape parse_shape(std::string_view option, std::string_view text);

DType parse_dtype(std::string_view option, std::string_view text);
Layout parse_layout(std::string_view option, std::string_view text);
Verify parse_verify(std::string_view option, std::string_view text);
// A kind of --decode: "raw", a payload, or a kind that a format has.
std::string parse_decode_kind(std::string_view option, const std::string& text);
// "224x224" or, with channels, "224x224x3", of --image.
ImageSize parse_image_size(std::string_view option, std::string_view text);
// A number as Python reads it, nan and inf included; returned as it is.
std::string parse_number_text(std::string_view option, const std::string& text);
// "train=0.8,val=0.2": names of splits with shares that add up to 1.
std::vector<std::pair<std::string, double>> parse_shares(std::string_view option,
                                                         const std::string& text);
// A name that a split may have.
std::string parse_split_name(std::string_view option, const std::string& text);
// A power of two from 64 to 64K.
std::uint64_t parse_header_align(std::string_view option, std::string_view text);
// NAME=JSON.
std::pair<std::string, Value> parse_attribute(std::string_view option, const std::string& text);
// An array's name that the user makes up.
std::string parse_array_name(std::string_view option, const std::string& text);

// The lines of a file, without their ends (LF or CR LF). Throws kNotFound, kIo.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace npyfs
