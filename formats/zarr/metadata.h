// SPDX-License-Identifier: Apache-2.0
//
// What .zarray and zarr.json say of an array, understood as far as to read it.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "formats/bytes/dtype.h"
#include "formats/bytes/value.h"
#include "formats/zarr/chunk_keys.h"
#include "formats/zarr/element_type.h"
#include "formats/zarr/pipeline.h"

namespace npyfs {

struct ArrayMetadata {
  ElementType type;
  Shape shape;
  Shape chunk_shape;  // of stored chunks; no axis is 0
  ChunkKeys keys;
  // Whether the document says what separates the indices in a key.
  bool separator_given = true;
  // Of elements of fixed size.
  std::vector<std::byte> fill;
  // Of text: what stands where a chunk was never written.
  std::string text_fill;
  // Puts the codecs together for elements that are handed on as `element`: its own, or what is made
  // of the objects. Throws kUnsupported.
  std::function<Pipeline(const Element& element)> build;
};

// Throws kUnsupported for what is not understood or contradicts itself.
ArrayMetadata read_metadata_v2(const Dict& document);
ArrayMetadata read_metadata_v3(const Dict& document);

}  // namespace npyfs
