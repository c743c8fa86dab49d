// SPDX-License-Identifier: Apache-2.0
//
// The word that a mistyped word was probably meant to be.

#pragma once

#include <span>
#include <string>
#include <string_view>

namespace npyfs {

// The candidate that differs least from `word` (letters added, left out, changed or swapped), or an
// empty string where none is near enough to be meant.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'x'?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace npyfs
