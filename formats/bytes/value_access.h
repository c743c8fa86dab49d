// SPDX-License-Identifier: Apache-2.0
//
// Looking into parsed JSON whose shape is not to be trusted.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/bytes/value.h"

namespace npyfs {

// The entry of that name, null where there is none.
const Value* find_value(const Dict& dict, std::string_view name);
// The same, null also where it is JSON's null.
const Value* find_present(const Dict& dict, std::string_view name);

// Null where it is something else.
const Dict* as_dict(const Value* value);
const List* as_list(const Value* value);
const std::string* as_text(const Value* value);
bool is_null(const Value& value);

// Nothing where it is something else, or does not fit. A float is no integer, however round.
std::optional<bool> as_bool(const Value* value);
std::optional<std::int64_t> as_int64(const Value* value);
std::optional<std::uint64_t> as_uint64(const Value* value);
// Integers too.
std::optional<double> as_double(const Value* value);

// As JSON on one line, cut after `most` bytes: what a message shows of it.
std::string brief_json(const Value& value, std::size_t most = 60);

}  // namespace npyfs
