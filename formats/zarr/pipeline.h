// SPDX-License-Identifier: Apache-2.0
//
// The codecs of one array, put together from its metadata.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "formats/bytes/codecs/codec_chain.h"
#include "formats/bytes/dtype.h"
#include "formats/bytes/value.h"
#include "formats/zarr/shard.h"

namespace npyfs {

// One element as the codecs hand it on.
struct Element {
  std::uint32_t nbytes = 1;
  // Of the numbers it is made of, whose byte order is the codec's to say; 0 for structured types.
  std::uint32_t number_nbytes = 1;
  // Makes elements of the objects of which a chunk is a list; null for elements of fixed size.
  std::function<CodecPtr()> make_object_codec;
  // Where a chunk was never written; never empty.
  std::vector<std::byte> fill;
};

struct Pipeline {
  // Decodes a stored chunk, or an inner chunk of a shard, to the elements of `chunk_shape`.
  CodecChain chain;
  Shape chunk_shape;
  // Where shards are read in parts: how they are built, and which axis of the array is which of
  // theirs (order[k] is that of axis k of the shard).
  std::optional<ShardLayout> shard;
  std::vector<std::size_t> shard_order;
  // Whether stored chunks are the elements themselves.
  bool is_plain() const { return chain.empty() && !shard; }
};

// zarr.json's `codecs`. Throws kUnsupported for what is not understood.
Pipeline build_pipeline(const Value* codecs, const Shape& chunk_shape, const Element& element);

// .zarray's `order`, `filters` and `compressor`; these two may be null.
Pipeline build_pipeline_v2(bool fortran_order, const List& filters, const Dict* compressor,
                           const Shape& chunk_shape, const Element& element);

// A name with its configuration, as version 3 has them everywhere: a text alone, or an object with
// `name` and `configuration`. Throws kUnsupported, calling it `what`, for anything else.
struct NamedConfiguration {
  std::string name;
  Dict configuration;
};
NamedConfiguration read_named(const Value& value, std::string_view what);

// A list of whole numbers, each at least `least`. Throws kUnsupported, calling it `what`.
Shape read_shape(const Value* value, std::string_view what, std::uint64_t least);

}  // namespace npyfs
