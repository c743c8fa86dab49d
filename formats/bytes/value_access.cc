// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/value_access.h"

#include <algorithm>
#include <cstdlib>

namespace npyfs {

namespace {

template <typename T>
const T* as(const Value* value) {
  return value == nullptr ? nullptr : std::get_if<T>(&value->v);
}

}  // namespace

const Value* find_value(const Dict& dict, std::string_view name) {
  const auto found =
      std::find_if(dict.begin(), dict.end(), [&](const auto& entry) { return entry.name == name; });
  return found == dict.end() ? nullptr : &found->value;
}

const Value* find_present(const Dict& dict, std::string_view name) {
  const Value* value = find_value(dict, name);
  return value != nullptr && !is_null(*value) ? value : nullptr;
}

const Dict* as_dict(const Value* value) { return as<Dict>(value); }
const List* as_list(const Value* value) { return as<List>(value); }
const std::string* as_text(const Value* value) { return as<std::string>(value); }
bool is_null(const Value& value) { return std::holds_alternative<std::monostate>(value.v); }

std::optional<bool> as_bool(const Value* value) {
  const auto* truth = as<bool>(value);
  return truth == nullptr ? std::nullopt : std::optional(*truth);
}

std::optional<std::int64_t> as_int64(const Value* value) {
  const auto* number = as<std::int64_t>(value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<std::uint64_t> as_uint64(const Value* value) {
  if (const auto* large = as<std::uint64_t>(value)) {
    return *large;
  }
  const auto* number = as<std::int64_t>(value);
  return number == nullptr || *number < 0 ? std::nullopt
                                          : std::optional(static_cast<std::uint64_t>(*number));
}

std::optional<double> as_double(const Value* value) {
  if (const auto* number = as<double>(value)) {
    return *number;
  }
  if (const auto* number = as<std::int64_t>(value)) {
    return static_cast<double>(*number);
  }
  if (const auto* large = as<std::uint64_t>(value)) {
    return static_cast<double>(*large);
  }
  if (const auto* big = as<BigInt>(value)) {
    return std::strtod(big->decimal.c_str(), nullptr);
  }
  return std::nullopt;
}

std::string brief_json(const Value& value, std::size_t most) {
  std::string line;
  bool indenting = false;
  for (const char c : print_json(value)) {
    if (c == '\n' || (c == ' ' && indenting)) {
      indenting = true;
      continue;
    }
    // A line break is a blank but for those behind and before brackets.
    const bool opened = line.empty() || line.back() == '[' || line.back() == '{';
    if (indenting && !opened && c != ']' && c != '}') {
      line += ' ';
    }
    indenting = false;
    line += c;
    if (line.size() > most) {
      return line.substr(0, most) + "...";
    }
  }
  return line;
}

}  // namespace npyfs
