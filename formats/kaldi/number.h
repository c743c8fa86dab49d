// SPDX-License-Identifier: Apache-2.0
//
// Numbers in text, as Kaldi's readers take them [kaldi-asr/kaldi:src/util/text-utils.cc].

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/kaldi/text.h"

namespace npyfs {

// Nothing for a word that is no integer of 32 bits.
std::optional<std::int32_t> parse_int32(std::string_view word);

// The number rounded to float32, or to float64 with `as_double`; nothing for a word that is none,
// or too large. No leading '+' or '.'.
std::optional<double> parse_number(std::string_view word, bool as_double);

// What to say of a word for which parse_number has nothing.
Error not_a_number(const MakeFault& fault, std::string_view word);

}  // namespace npyfs
