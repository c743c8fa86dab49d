// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/codecs/codec_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/value_access.h"

namespace npyfs {

namespace {

// The configuration of one codec, asked for its members.
class Configuration {
 public:
  Configuration(std::string_view codec, const Dict& dict) : codec_(codec), dict_(dict) {}

  const Value* find(std::string_view name) const { return find_present(dict_, name); }

  Error refuse(std::string_view name, std::string_view expected) const {
    const Value* value = find(name);
    return {ErrorKind::kUnsupported,
            fmt::format("codec {}: {} is {}, expected {}", codec_, name,
                        value == nullptr ? "missing" : brief_json(*value), expected)};
  }

  // `fallback` where it is missing or null.
  std::uint64_t count(std::string_view name, std::uint64_t fallback, std::uint64_t most) const {
    if (find(name) == nullptr) {
      return fallback;
    }
    const auto number = as_uint64(find(name));
    if (!number || *number > most) {
      throw refuse(name, fmt::format("an integer from 0 to {}", most));
    }
    return *number;
  }

  double number(std::string_view name) const {
    const auto number = as_double(find(name));
    if (!number) {
      throw refuse(name, "a number");
    }
    return *number;
  }

  DType dtype(std::string_view name) const {
    const std::string* text = as_text(find(name));
    const auto dtype = text == nullptr ? std::nullopt : DType::from_user(*text);
    if (!dtype) {
      throw refuse(name, "a type");
    }
    return *dtype;
  }

  DType dtype(std::string_view name, const DType& fallback) const {
    return find(name) == nullptr ? fallback : dtype(name);
  }

  ChecksumPlace place(ChecksumPlace fallback) const {
    if (find("location") == nullptr) {
      return fallback;
    }
    const std::string* text = as_text(find("location"));
    if (text == nullptr || (*text != "start" && *text != "end")) {
      throw refuse("location", "\"start\" or \"end\"");
    }
    return *text == "start" ? ChecksumPlace::kStart : ChecksumPlace::kEnd;
  }

 private:
  std::string_view codec_;
  const Dict& dict_;
};

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

CodecPtr configured_delta(const Configuration& configuration) {
  const DType dtype = configuration.dtype("dtype");
  return make_delta(dtype, configuration.dtype("astype", dtype));
}

CodecPtr configured_fixed_scale_offset(const Configuration& configuration) {
  const DType dtype = configuration.dtype("dtype");
  return make_fixed_scale_offset(dtype, configuration.dtype("astype", dtype),
                                 configuration.number("scale"), configuration.number("offset"));
}

CodecPtr configured_quantize(const Configuration& configuration) {
  const DType dtype = configuration.dtype("dtype");
  return make_cast("quantize", dtype, configuration.dtype("astype", dtype));
}

CodecPtr configured_astype(const Configuration& configuration) {
  return make_cast("astype", configuration.dtype("decode_dtype"),
                   configuration.dtype("encode_dtype"));
}

CodecPtr configured_categorize(const Configuration& configuration) {
  const List* list = as_list(configuration.find("labels"));
  std::vector<std::string> labels;
  for (const Value& label : list == nullptr ? List() : *list) {
    if (as_text(&label) == nullptr) {
      list = nullptr;
      break;
    }
    labels.push_back(*as_text(&label));
  }
  if (list == nullptr) {
    throw configuration.refuse("labels", "a list of texts");
  }
  return make_categorize(configuration.dtype("dtype"),
                         configuration.dtype("astype", DType::simple("|u1")), labels);
}

LzmaFilter lzma_filter(const Value& value) {
  const Dict none;
  const Dict* dict = as_dict(&value);
  const Configuration configuration("lzma filter", dict == nullptr ? none : *dict);
  const auto optional = [&](std::string_view name) -> std::optional<std::uint32_t> {
    if (configuration.find(name) == nullptr) {
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(configuration.count(name, 0, kMost32));
  };
  if (configuration.find("id") == nullptr) {
    throw configuration.refuse("id", "a number");
  }
  LzmaFilter filter;
  filter.id = configuration.count("id", 0, std::numeric_limits<std::int64_t>::max());
  filter.preset = optional("preset").value_or(filter.preset);
  filter.dict_nbytes = optional("dict_size");
  filter.lc = optional("lc");
  filter.lp = optional("lp");
  filter.pb = optional("pb");
  filter.dist = optional("dist").value_or(filter.dist);
  filter.start_offset = optional("start_offset").value_or(0);
  return filter;
}

CodecPtr configured_lzma(const Configuration& configuration) {
  const auto format = static_cast<LzmaFormat>(configuration.count("format", 1, 3));
  std::vector<LzmaFilter> filters;
  const List* list = as_list(configuration.find("filters"));
  for (const Value& filter : list == nullptr ? List() : *list) {
    filters.push_back(lzma_filter(filter));
  }
  return make_lzma(format, filters);
}

CodecPtr configured_jenkins(const Configuration& configuration) {
  if (configuration.find("prefix") != nullptr) {
    throw configuration.refuse("prefix", "none");
  }
  return make_jenkins_lookup3(
      static_cast<std::uint32_t>(configuration.count("initval", 0, kMost32)));
}

struct Row {
  std::string_view name;
  CodecPtr (*make)(const Configuration& configuration);
  bool of_elements = false;
};

constexpr std::array kCodecs = std::to_array<Row>({
    {"adler32",
     [](const Configuration& c) { return make_adler32(c.place(ChecksumPlace::kStart)); }},
    {"astype", configured_astype, true},
    {"base64", [](const Configuration&) { return make_base64(); }},
    {"bitround", [](const Configuration&) { return make_identity("bitround"); }, true},
    {"blosc", [](const Configuration&) { return make_blosc(); }},
    {"bz2", [](const Configuration&) { return make_bz2(); }},
    {"categorize", configured_categorize},
    {"crc32", [](const Configuration& c) { return make_crc32(c.place(ChecksumPlace::kStart)); }},
    {"crc32c", [](const Configuration& c) { return make_crc32c(c.place(ChecksumPlace::kEnd)); }},
    {"delta", configured_delta, true},
    {"fixedscaleoffset", configured_fixed_scale_offset, true},
    {"fletcher32", [](const Configuration&) { return make_fletcher32(); }},
    {"gzip", [](const Configuration&) { return make_gzip(); }},
    {"jenkins_lookup3", configured_jenkins},
    {"lz4", [](const Configuration&) { return make_lz4(); }},
    {"lzma", configured_lzma},
    {"packbits", [](const Configuration&) { return make_packbits(); }, true},
    {"quantize", configured_quantize, true},
    {"shuffle",
     [](const Configuration& c) { return make_shuffle(c.count("elementsize", 4, kMost32)); }},
    {"zlib", [](const Configuration&) { return make_zlib(); }},
    {"zstd", [](const Configuration&) { return make_zstd(); }},
});

const Row* find_row(std::string_view name) {
  const auto* const row = std::find_if(
      kCodecs.begin(), kCodecs.end(), [&](const Row& candidate) { return candidate.name == name; });
  return row != kCodecs.end() ? row : nullptr;
}

}  // namespace

CodecPtr make_codec(std::string_view name, const Dict& configuration) {
  const Row* row = find_row(name);
  if (row == nullptr) {
    throw Error(ErrorKind::kUnsupported, fmt::format("codec '{}' is not known", printable(name)));
  }
  return row->make(Configuration(row->name, configuration));
}

bool is_element_codec(std::string_view name) {
  const Row* row = find_row(name);
  return row != nullptr && row->of_elements;
}

}  // namespace npyfs
