// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/element_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/bytes/npy_header.h"
#include "formats/bytes/value_access.h"
#include "formats/zarr/pipeline.h"

namespace npyfs {

namespace {

constexpr int kMostNesting = 32;

Error refuse(std::string_view what, const Value& value) {
  return {ErrorKind::kUnsupported,
          fmt::format("{} is {}, expected a type that numpy has", what, brief_json(value))};
}

// A structured type as numpy spells it, with its size. Throws Error where it is none.
DType from_descr(const std::string& descr) {
  const std::string header = print_npy_header({descr, 0, 'V'}, {}, false);
  return parse_npy_header(std::as_bytes(std::span(header)), "dtype", 0).dtype;
}

DType require_size(DType dtype, std::string_view what, const Value& value) {
  if (dtype.itemsize == 0) {
    throw refuse(what, value);
  }
  return dtype;
}

// ---- version 2

std::string descr_v2(const Value& value, int depth);

std::string field_v2(const Value& value, int depth) {
  const List* field = as_list(&value);
  if (field == nullptr || field->size() < 2 || field->size() > 3 ||
      as_text(&(*field)[0]) == nullptr) {
    throw refuse("a field of dtype", value);
  }
  std::string descr =
      fmt::format("({}, {}", quoted(*as_text(&(*field)[0])), descr_v2((*field)[1], depth + 1));
  if (field->size() == 3) {
    descr += ", " + shape_text(read_shape(&(*field)[2], "a field's shape", 0));
  }
  return descr + ")";
}

std::string descr_v2(const Value& value, int depth) {
  if (const std::string* code = as_text(&value)) {
    if (!DType::from_user(*code)) {
      throw refuse("dtype", value);
    }
    return quoted(*code);
  }
  const List* fields = as_list(&value);
  if (fields == nullptr || fields->empty() || depth == kMostNesting) {
    throw refuse("dtype", value);
  }
  std::string descr;
  for (const Value& field : *fields) {
    descr += (descr.empty() ? "[" : ", ") + field_v2(field, depth);
  }
  return descr + "]";
}

// ---- version 3

struct NamedType {
  std::string_view name;
  std::string_view code;
};

constexpr std::array kNumbers = std::to_array<NamedType>({
    {"bool", "|b1"},
    {"int8", "|i1"},
    {"int16", "<i2"},
    {"int32", "<i4"},
    {"int64", "<i8"},
    {"uint8", "|u1"},
    {"uint16", "<u2"},
    {"uint32", "<u4"},
    {"uint64", "<u8"},
    {"float16", "<f2"},
    {"float32", "<f4"},
    {"float64", "<f8"},
    {"complex64", "<c8"},
    {"complex128", "<c16"},
});

std::string code_v3(const Value& value, int depth);

std::string structured_v3(const Dict& configuration, const Value& value, int depth) {
  const List* fields = as_list(find_value(configuration, "fields"));
  if (fields == nullptr || fields->empty() || depth == kMostNesting) {
    throw refuse("data_type", value);
  }
  std::string descr;
  for (const Value& field : *fields) {
    const List* pair = as_list(&field);
    const Dict* object = as_dict(&field);
    const Value* name = nullptr;
    const Value* type = nullptr;
    if (pair != nullptr && pair->size() == 2) {
      name = pair->data();
      type = pair->data() + 1;
    } else if (object != nullptr) {
      name = find_value(*object, "name");
      type = find_value(*object, "data_type");
    }
    if (as_text(name) == nullptr || type == nullptr) {
      throw refuse("a field of data_type", field);
    }
    descr += fmt::format("{}({}, {})", descr.empty() ? "[" : ", ", quoted(*as_text(name)),
                         code_v3(*type, depth + 1));
  }
  return descr + "]";
}

// As a Python literal.
std::string code_v3(const Value& value, int depth) {
  const NamedConfiguration type = read_named(value, "data_type");
  const std::string& name = type.name;
  const Dict& configuration = type.configuration;
  const auto number = std::find_if(kNumbers.begin(), kNumbers.end(),
                                   [&](const NamedType& row) { return row.name == name; });
  if (number != kNumbers.end()) {
    return quoted(number->code);
  }
  const auto count = [&](std::string_view member, std::uint64_t unit) {
    const auto nbytes = as_uint64(find_value(configuration, member));
    if (!nbytes || *nbytes == 0 || *nbytes % unit != 0) {
      throw refuse("data_type", value);
    }
    return *nbytes / unit;
  };
  if (name == "fixed_length_utf32") {
    return fmt::format("'<U{}'", count("length_bytes", 4));
  }
  if (name == "null_terminated_bytes") {
    return fmt::format("'|S{}'", count("length_bytes", 1));
  }
  if (name == "raw_bytes") {
    return fmt::format("'|V{}'", count("length_bytes", 1));
  }
  if (name == "numpy.datetime64" || name == "numpy.timedelta64") {
    const char kind = name == "numpy.datetime64" ? 'M' : 'm';
    const std::string* unit = as_text(find_value(configuration, "unit"));
    if (unit == nullptr) {
      throw refuse("data_type", value);
    }
    if (*unit == "generic") {
      return fmt::format("'<{}8'", kind);
    }
    return quoted(fmt::format("<{}8[{}{}]", kind, count("scale_factor", 1), *unit));
  }
  if (name == "structured" || name == "struct") {
    return structured_v3(configuration, value, depth);
  }
  if (name.starts_with('r') && name.size() > 1 &&
      name.find_first_not_of("0123456789", 1) == std::string::npos && name.size() < 12) {
    const std::uint64_t bits = std::stoull(name.substr(1));
    if (bits > 0 && bits % 8 == 0) {
      return fmt::format("'|V{}'", bits / 8);
    }
  }
  throw refuse("data_type", value);
}

DType from_literal(const std::string& literal, std::string_view what, const Value& value) {
  if (literal.starts_with('[')) {
    return from_descr(literal);
  }
  const auto dtype = DType::from_user(literal.substr(1, literal.size() - 2));
  if (!dtype) {
    throw refuse(what, value);
  }
  return *dtype;
}

}  // namespace

ElementType read_type_v2(const Value* value) {
  if (value == nullptr) {
    throw Error(ErrorKind::kUnsupported, "dtype is missing");
  }
  const std::string* code = as_text(value);
  if (code != nullptr && (*code == "|O" || *code == "O")) {
    return {{}, ElementObjects::kText};
  }
  return {require_size(from_literal(descr_v2(*value, 0), "dtype", *value), "dtype", *value),
          ElementObjects::kNone};
}

ElementType read_type_v3(const Value* value) {
  if (value == nullptr) {
    throw Error(ErrorKind::kUnsupported, "data_type is missing");
  }
  const std::string name = read_named(*value, "data_type").name;
  if (name == "string") {
    return {{}, ElementObjects::kText};
  }
  if (name == "bytes" || name == "variable_length_bytes") {
    return {DType::simple("|u1"), ElementObjects::kBytes};
  }
  return {require_size(from_literal(code_v3(*value, 0), "data_type", *value), "data_type", *value),
          ElementObjects::kNone};
}

std::uint32_t number_nbytes(const DType& dtype) {
  if (dtype.descr.starts_with('[')) {
    return 0;
  }
  switch (dtype.kind) {
    case 'c':
      return dtype.itemsize / 2;
    case 'U':
      return 4;
    case 'S':
    case 'V':
      return 1;
    default:
      return dtype.itemsize;
  }
}

}  // namespace npyfs
