// SPDX-License-Identifier: Apache-2.0
//
// Codecs by the names and configurations that numcodecs gives them, which zarr stores.

#pragma once

#include <string_view>

#include "formats/bytes/codecs/codec.h"
#include "formats/bytes/value.h"

namespace npyfs {

// The codec that numcodecs calls `name`, configured by `configuration`. Throws kUnsupported for a
// name or a configuration that is not known; the text tells them.
CodecPtr make_codec(std::string_view name, const Dict& configuration);

// Whether the codec encodes the elements of an array, not bytes of any kind: zarr 3 keeps the two
// apart. False for a name that is not known.
bool is_element_codec(std::string_view name);

}  // namespace npyfs
