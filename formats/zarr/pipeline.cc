// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/codecs/codec_table.h"
#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/value_access.h"
#include "formats/chunk_grid.h"
#include "formats/zarr/transpose.h"

namespace npyfs {

namespace {

// Shards in shards in shards: nobody needs more.
constexpr int kMostNesting = 8;
// What an index may take in memory: 16 million inner chunks in one shard.
constexpr std::uint64_t kMostIndexNbytes = std::uint64_t{256} << 20;
constexpr std::size_t kMostCodecs = 64;

Error unsupported(const std::string& text) { return {ErrorKind::kUnsupported, text}; }

using Order = std::vector<std::size_t>;

Order identity_order(std::size_t rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

Order read_order(const Dict& configuration, std::size_t rank) {
  const Shape given = read_shape(find_value(configuration, "order"), "transpose order", 0);
  Order order(given.begin(), given.end());
  Order sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != identity_order(rank)) {
    throw unsupported(fmt::format("transpose order is {}, expected a permutation of the {} axes",
                                  shape_text(given), rank));
  }
  return order;
}

// What numcodecs' codecs are called in version 3.
constexpr std::string_view kPrefix = "numcodecs.";

bool is_array_codec(std::string_view name) {
  return name == "transpose" ||
         (name.starts_with(kPrefix) && is_element_codec(name.substr(kPrefix.size())));
}

bool is_serializer(std::string_view name) {
  return name == "bytes" || name == "vlen-utf8" || name == "vlen-bytes" ||
         name == "numcodecs.vlen-utf8" || name == "numcodecs.vlen-bytes" ||
         name == "numcodecs.vlen-array" || name == "sharding_indexed";
}

CodecPtr make_named_codec(const NamedConfiguration& codec) {
  const std::string_view name = codec.name;
  // Of numcodecs' own, these are in the core of version 3.
  constexpr std::string_view kCore[] = {"blosc", "gzip", "zstd", "crc32c"};
  if (name.starts_with(kPrefix)) {
    return make_codec(name.substr(kPrefix.size()), codec.configuration);
  }
  if (std::find(std::begin(kCore), std::end(kCore), name) == std::end(kCore)) {
    throw unsupported(fmt::format("codec '{}' is not known", printable(name)));
  }
  return make_codec(name, codec.configuration);
}

std::vector<NamedConfiguration> read_codecs(const Value* value, std::string_view what) {
  const List* list = as_list(value);
  if (list == nullptr || list->empty() || list->size() > kMostCodecs) {
    throw unsupported(fmt::format("{} is {}, expected a list of 1 to {} codecs", what,
                                  value == nullptr ? "missing" : brief_json(*value), kMostCodecs));
  }
  std::vector<NamedConfiguration> codecs;
  for (const Value& codec : *list) {
    codecs.push_back(read_named(codec, "codec"));
  }
  return codecs;
}

class Builder {
 public:
  Builder(const Element& element, int depth) : element_(element), depth_(depth) {}

  // `may_split`: a shard may be left to be read in parts.
  Pipeline build(const std::vector<NamedConfiguration>& codecs, const Shape& chunk_shape,
                 bool may_split) const {
    const auto serializer = find_serializer(codecs);
    Pipeline pipeline;
    pipeline.chunk_shape = chunk_shape;
    Shape shape = chunk_shape;  // as stored so far
    Order order = identity_order(shape.size());
    bool only_transposed = true;
    for (auto codec = codecs.begin(); codec != serializer; ++codec) {
      if (codec->name == "transpose") {
        const Order step = read_order(codec->configuration, shape.size());
        add_transpose(pipeline.chain, shape, step);
        shape = transposed(shape, step);
        Order composed;
        for (const std::size_t axis : step) {
          composed.push_back(order[axis]);
        }
        order = composed;
      } else if (element_.make_object_codec) {
        throw unsupported(fmt::format("codec '{}' of objects", printable(codec->name)));
      } else {
        pipeline.chain.add(make_named_codec(*codec));
        only_transposed = false;
      }
    }
    if (serializer->name == "sharding_indexed") {
      const bool split = may_split && only_transposed && serializer + 1 == codecs.end();
      add_shard(pipeline, serializer->configuration, shape, order, split);
    } else {
      add_serializer(pipeline.chain, *serializer);
    }
    for (auto codec = serializer + 1; codec != codecs.end(); ++codec) {
      pipeline.chain.add(make_named_codec(*codec));
    }
    return pipeline;
  }

 private:
  using Codecs = std::vector<NamedConfiguration>;

  static Codecs::const_iterator find_serializer(const Codecs& codecs) {
    const auto found = std::find_if(codecs.begin(), codecs.end(),
                                    [](const auto& codec) { return !is_array_codec(codec.name); });
    const auto count = std::count_if(codecs.begin(), codecs.end(),
                                     [](const auto& codec) { return is_serializer(codec.name); });
    if (found == codecs.end() || !is_serializer(found->name) || count != 1) {
      // A codec nobody knows may be the one that is missing.
      for (const NamedConfiguration& codec : codecs) {
        if (!is_array_codec(codec.name) && !is_serializer(codec.name)) {
          make_named_codec(codec);
        }
      }
      throw unsupported(
          fmt::format("codecs have {} that turn an array into bytes, expected one, "
                      "behind those of arrays and before those of bytes",
                      count));
    }
    return found;
  }

  void add_transpose(CodecChain& chain, const Shape& shape, const Order& order) const {
    if (order != identity_order(order.size())) {
      chain.add(make_transpose(shape, order, element_.nbytes));
    }
  }

  void add_serializer(CodecChain& chain, const NamedConfiguration& codec) const {
    if (element_.make_object_codec) {
      if (codec.name == "bytes") {
        throw unsupported("codec 'bytes' of objects");
      }
      chain.add(element_.make_object_codec());
      return;
    }
    if (codec.name != "bytes") {
      throw unsupported(fmt::format("codec '{}' of elements of fixed size", codec.name));
    }
    const Value* endian = find_present(codec.configuration, "endian");
    const std::string* text = as_text(endian);
    const bool is_known = text != nullptr && (*text == "little" || *text == "big");
    if (endian == nullptr ? element_.number_nbytes > 1 : !is_known) {
      throw unsupported(fmt::format("codec 'bytes': endian is {}, expected \"little\" or \"big\"",
                                    endian == nullptr ? "missing" : brief_json(*endian)));
    }
    if (text != nullptr && *text == "big" && element_.number_nbytes != 1) {
      if (element_.number_nbytes == 0) {
        throw unsupported("codec 'bytes': endian \"big\" of a structured type");
      }
      chain.add(make_byte_swap(element_.number_nbytes));
    }
  }

  void add_shard(Pipeline& pipeline, const Dict& configuration, const Shape& shape,
                 const Order& order, bool split) const {
    if (depth_ == kMostNesting) {
      throw unsupported(fmt::format("shards are nested deeper than {}", kMostNesting));
    }
    ShardLayout layout = read_layout(configuration, shape);
    const auto inner_codecs = read_codecs(find_value(configuration, "codecs"), "sharding codecs");
    Pipeline inner = Builder(element_, depth_ + 1).build(inner_codecs, layout.inner_shape, false);
    if (!split) {
      pipeline.chain.add(
          make_shard_codec(std::move(layout), std::move(inner.chain), element_.fill));
      return;
    }
    // The array's inner chunk, and the chain that ends in it.
    for (std::size_t axis = 0; axis < order.size(); ++axis) {
      pipeline.chunk_shape[order[axis]] = layout.inner_shape[axis];
    }
    pipeline.chain = CodecChain();
    add_transpose(pipeline.chain, pipeline.chunk_shape, order);
    pipeline.chain.append(std::move(inner.chain));
    pipeline.shard = std::move(layout);
    pipeline.shard_order = order;
  }

  ShardLayout read_layout(const Dict& configuration, const Shape& shape) const {
    ShardLayout layout;
    layout.shard_shape = shape;
    layout.element_nbytes = element_.nbytes;
    layout.inner_shape =
        read_shape(find_value(configuration, "chunk_shape"), "sharding chunk_shape", 1);
    if (layout.inner_shape.size() != shape.size()) {
      throw unsupported(fmt::format("sharding chunk_shape is {}, expected {} axes",
                                    shape_text(layout.inner_shape), shape.size()));
    }
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] % layout.inner_shape[axis] != 0) {
        throw unsupported(fmt::format("sharding chunk_shape is {}, expected it to divide {}",
                                      shape_text(layout.inner_shape), shape_text(shape)));
      }
      layout.grid_shape.push_back(shape[axis] / layout.inner_shape[axis]);
    }
    layout.inner_count = element_count(layout.grid_shape).value_or(UINT64_MAX);
    const auto nbytes = checked_mul(layout.inner_count, 16);
    if (!nbytes || *nbytes > kMostIndexNbytes) {
      throw unsupported(fmt::format("a shard has {} inner chunks, expected at most {}",
                                    layout.inner_count, kMostIndexNbytes / 16));
    }
    read_index_location(configuration, layout);
    read_index_codecs(configuration, layout);
    return layout;
  }

  static void read_index_location(const Dict& configuration, ShardLayout& layout) {
    if (const Value* location = find_present(configuration, "index_location")) {
      const std::string* text = as_text(location);
      if (text == nullptr || (*text != "start" && *text != "end")) {
        throw unsupported(fmt::format("index_location is {}, expected \"start\" or \"end\"",
                                      brief_json(*location)));
      }
      layout.index_first = *text == "start";
    }
  }

  static void read_index_codecs(const Dict& configuration, ShardLayout& layout) {
    const Element number{8, 8, nullptr, {}};
    Shape index_shape = layout.grid_shape;
    index_shape.push_back(2);
    const auto codecs = read_codecs(find_value(configuration, "index_codecs"), "index_codecs");
    layout.index_codecs = Builder(number, kMostNesting).build(codecs, index_shape, false).chain;
    const auto nbytes = layout.index_codecs.stored_nbytes(layout.index_nbytes());
    if (!nbytes) {
      throw unsupported(fmt::format("index_codecs are {}, expected codecs of fixed size",
                                    layout.index_codecs.text()));
    }
    layout.stored_index_nbytes = *nbytes;
  }

  const Element& element_;
  int depth_;
};

}  // namespace

NamedConfiguration read_named(const Value& value, std::string_view what) {
  if (const std::string* name = as_text(&value)) {
    return {*name, {}};
  }
  const Dict* dict = as_dict(&value);
  const std::string* name = dict == nullptr ? nullptr : as_text(find_value(*dict, "name"));
  const Value* configuration = dict == nullptr ? nullptr : find_present(*dict, "configuration");
  if (name == nullptr || (configuration != nullptr && as_dict(configuration) == nullptr)) {
    throw unsupported(
        fmt::format("{} is {}, expected a name with a configuration", what, brief_json(value)));
  }
  return {*name, configuration == nullptr ? Dict() : *as_dict(configuration)};
}

Shape read_shape(const Value* value, std::string_view what, std::uint64_t least) {
  constexpr std::size_t kMostAxes = 64;  // of any numpy
  const List* list = as_list(value);
  const auto refuse = [&] {
    return unsupported(
        fmt::format("{} is {}, expected a list of at most {} whole numbers of {} or "
                    "more",
                    what, value == nullptr ? "missing" : brief_json(*value), kMostAxes, least));
  };
  if (list == nullptr || list->size() > kMostAxes) {
    throw refuse();
  }
  Shape shape;
  for (const Value& length : *list) {
    const auto number = as_uint64(&length);
    if (!number || *number < least || *number > INT64_MAX) {
      throw refuse();
    }
    shape.push_back(*number);
  }
  return shape;
}

Pipeline build_pipeline(const Value* codecs, const Shape& chunk_shape, const Element& element) {
  return Builder(element, 0).build(read_codecs(codecs, "codecs"), chunk_shape, true);
}

Pipeline build_pipeline_v2(bool fortran_order, const List& filters, const Dict* compressor,
                           const Shape& chunk_shape, const Element& element) {
  Pipeline pipeline;
  pipeline.chunk_shape = chunk_shape;
  if (fortran_order && chunk_shape.size() > 1) {
    Order order = identity_order(chunk_shape.size());
    std::reverse(order.begin(), order.end());
    pipeline.chain.add(make_transpose(chunk_shape, order, element.nbytes));
  }
  if (element.make_object_codec) {
    pipeline.chain.add(element.make_object_codec());
  }
  const auto add = [&](const Dict& codec) {
    const std::string* id = as_text(find_value(codec, "id"));
    if (id == nullptr) {
      throw unsupported(fmt::format("codec is {}, expected an id", brief_json({codec})));
    }
    pipeline.chain.add(make_codec(*id, codec));
  };
  for (const Value& filter : filters) {
    if (as_dict(&filter) == nullptr) {
      throw unsupported(fmt::format("filter is {}, expected an object", brief_json(filter)));
    }
    add(*as_dict(&filter));
  }
  if (compressor != nullptr) {
    add(*compressor);
  }
  return pipeline;
}

}  // namespace npyfs
