// SPDX-License-Identifier: Apache-2.0
//
// What Python's json takes for JSON and other readers do not.

#pragma once

#include <string>
#include <string_view>

namespace npyfs {

// `text`, which is UTF-8, with what RapidJSON refuses spelt so that it does not (as long as it is
// not asked to validate): half a surrogate pair as the three bytes of its code point, a float
// beyond the range of double as Infinity, and an integer of more than 300 digits, which it cannot
// be given, as a text of its digits. What is no JSON for Python stays as it is.
std::string respell_json(std::string_view text);

}  // namespace npyfs
