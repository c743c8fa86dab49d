// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/bytes/error.h"
#include "formats/bytes/utf8.h"
#include "formats/bytes/value_access.h"
#include "formats/zarr/fill_value.h"

namespace npyfs {

namespace {

Error refuse(const Dict& document, std::string_view member, std::string_view expected) {
  const Value* value = find_value(document, member);
  return {ErrorKind::kUnsupported,
          fmt::format("{} is {}, expected {}", member,
                      value == nullptr ? "missing" : brief_json(*value), expected)};
}

void require_format(const Dict& document, std::int64_t version) {
  if (as_int64(find_value(document, "zarr_format")) != version) {
    throw refuse(document, "zarr_format", fmt::to_string(version));
  }
}

void require_rank(const Shape& chunk_shape, const Shape& shape) {
  if (chunk_shape.size() != shape.size()) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("chunk shape is {}, expected {} axes as shape {} has",
                            shape_text(chunk_shape), shape.size(), shape_text(shape)));
  }
}

char read_separator(const Dict& from, std::string_view member, char fallback) {
  const Value* value = find_present(from, member);
  if (value == nullptr) {
    return fallback;
  }
  const std::string* text = as_text(value);
  if (text == nullptr || (*text != "." && *text != "/")) {
    throw refuse(from, member, "\".\" or \"/\"");
  }
  return text->front();
}

// ---- version 2

// Takes the object codec off `filters`: it comes first. Throws kUnsupported where npyfs cannot show
// such objects.
void read_objects(List& filters, ElementType& type) {
  const Dict* first = filters.empty() ? nullptr : as_dict(&filters.front());
  const std::string* id = first == nullptr ? nullptr : as_text(find_value(*first, "id"));
  if (id == nullptr) {
    throw Error(ErrorKind::kUnsupported, "dtype is |O without a filter that knows the objects");
  }
  if (*id == "vlen-utf8") {
    type = {{}, ElementObjects::kText};
  } else if (*id == "vlen-bytes") {
    type = {DType::simple("|u1"), ElementObjects::kBytes};
  } else if (*id == "vlen-array") {
    type = {read_type_v2(find_value(*first, "dtype")).dtype, ElementObjects::kBytes};
    if (type.dtype.itemsize == 0) {
      throw refuse(*first, "dtype", "a type that numpy has");
    }
  } else {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("dtype is |O of '{}', expected vlen-utf8, vlen-bytes, vlen-array or "
                            "categorize; other objects are not read",
                            printable(*id)));
  }
  filters.erase(filters.begin());
}

// Labels are texts of known size: nothing of variable length is stored.
bool read_labels(List& filters, ElementType& type) {
  Dict* first = filters.empty() ? nullptr : std::get_if<Dict>(&filters.front().v);
  const std::string* id = first == nullptr ? nullptr : as_text(find_value(*first, "id"));
  if (id == nullptr || *id != "categorize") {
    return false;
  }
  std::uint64_t longest = 1;
  if (const List* labels = as_list(find_value(*first, "labels"))) {
    for (const Value& label : *labels) {
      if (const std::string* text = as_text(&label)) {
        longest = std::max(longest, utf8_length(*text));
      }
    }
  }
  const std::string code = fmt::format("<U{}", longest);
  const auto dtype = DType::from_user(code);
  if (!dtype) {
    throw refuse(*first, "labels", "shorter texts");
  }
  set_value(*first, "dtype", {code});
  type = {*dtype, ElementObjects::kNone};
  return true;
}

List read_filters(const Dict& document) {
  const Value* filters = find_present(document, "filters");
  if (filters == nullptr) {
    return {};
  }
  if (as_list(filters) == nullptr) {
    throw refuse(document, "filters", "a list or null");
  }
  return *as_list(filters);
}

// ---- version 3

// A member nobody defined may be ignored only where it says so.
void require_understood(const Dict& document) {
  constexpr std::array<std::string_view, 11> kKnown = {
      "zarr_format",         "node_type", "shape",      "data_type",       "chunk_grid",
      "fill_value",          "codecs",    "attributes", "dimension_names", "chunk_key_encoding",
      "storage_transformers"};
  for (const auto& [name, value] : document) {
    if (std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) {
      continue;
    }
    const Dict* extension = as_dict(&value);
    if (extension == nullptr || as_bool(find_value(*extension, "must_understand")).value_or(true)) {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("member '{}' is not known and must be understood", printable(name)));
    }
  }
  if (const Value* transformers = find_present(document, "storage_transformers")) {
    const List* list = as_list(transformers);
    if (list == nullptr || !list->empty()) {
      throw refuse(document, "storage_transformers", "none");
    }
  }
}

Shape read_grid(const Dict& document) {
  const Value* value = find_value(document, "chunk_grid");
  if (value == nullptr) {
    throw refuse(document, "chunk_grid", "a regular grid");
  }
  const auto [name, configuration] = read_named(*value, "chunk_grid");
  if (name != "regular") {
    throw refuse(document, "chunk_grid", "a regular grid");
  }
  return read_shape(find_value(configuration, "chunk_shape"), "chunk_shape", 1);
}

ChunkKeys read_keys_v3(const Dict& document) {
  const Value* value = find_present(document, "chunk_key_encoding");
  if (value == nullptr) {
    throw refuse(document, "chunk_key_encoding", "default or v2");
  }
  const auto [name, configuration] = read_named(*value, "chunk_key_encoding");
  if (name != "default" && name != "v2") {
    throw refuse(document, "chunk_key_encoding", "default or v2");
  }
  const bool is_default = name == "default";
  return {is_default, read_separator(configuration, "separator", is_default ? '/' : '.')};
}

std::string read_text_fill(const Value* value) {
  const std::string* text = as_text(value);
  return text == nullptr ? std::string() : *text;
}

}  // namespace

ArrayMetadata read_metadata_v2(const Dict& document) {
  require_format(document, 2);
  ArrayMetadata metadata;
  metadata.shape = read_shape(find_value(document, "shape"), "shape", 0);
  metadata.chunk_shape = read_shape(find_value(document, "chunks"), "chunks", 1);
  require_rank(metadata.chunk_shape, metadata.shape);
  metadata.keys = {false, read_separator(document, "dimension_separator", '.')};
  metadata.separator_given = find_present(document, "dimension_separator") != nullptr;
  const std::string* order = as_text(find_value(document, "order"));
  if (order == nullptr || (*order != "C" && *order != "F")) {
    throw refuse(document, "order", "\"C\" or \"F\"");
  }
  const Value* compressor = find_present(document, "compressor");
  if (compressor != nullptr && as_dict(compressor) == nullptr) {
    throw refuse(document, "compressor", "an object or null");
  }
  List filters = read_filters(document);
  metadata.type = read_type_v2(find_value(document, "dtype"));
  const bool is_object = metadata.type.objects != ElementObjects::kNone;
  const Value* fill = find_present(document, "fill_value");
  if (is_object && !read_labels(filters, metadata.type)) {
    read_objects(filters, metadata.type);
    metadata.text_fill = read_text_fill(fill);
  } else {
    metadata.fill = read_fill_value(fill == nullptr ? Value() : *fill, metadata.type.dtype);
  }
  const std::optional<Dict> compressing =
      compressor == nullptr ? std::nullopt : std::optional(*as_dict(compressor));
  metadata.build = [fortran = *order == "F", filters, compressing,
                    chunk_shape = metadata.chunk_shape](const Element& element) {
    return build_pipeline_v2(fortran, filters, compressing ? &*compressing : nullptr, chunk_shape,
                             element);
  };
  return metadata;
}

ArrayMetadata read_metadata_v3(const Dict& document) {
  require_format(document, 3);
  require_understood(document);
  ArrayMetadata metadata;
  metadata.shape = read_shape(find_value(document, "shape"), "shape", 0);
  metadata.chunk_shape = read_grid(document);
  require_rank(metadata.chunk_shape, metadata.shape);
  metadata.keys = read_keys_v3(document);
  metadata.type = read_type_v3(find_value(document, "data_type"));
  const Value* fill = find_value(document, "fill_value");
  if (fill == nullptr) {
    throw refuse(document, "fill_value", "a value");
  }
  if (metadata.type.objects == ElementObjects::kNone) {
    metadata.fill = read_fill_value(*fill, metadata.type.dtype);
  } else {
    metadata.text_fill = read_text_fill(fill);
  }
  const Value* codecs = find_value(document, "codecs");
  metadata.build = [codecs = codecs == nullptr ? Value() : *codecs,
                    chunk_shape = metadata.chunk_shape](const Element& element) {
    return build_pipeline(&codecs, chunk_shape, element);
  };
  return metadata;
}

}  // namespace npyfs
