// SPDX-License-Identifier: Apache-2.0
//
// What the bytes of a kept array depend on, as text and as its digest. Two arrays with equal texts
// have equal bytes, wherever and whenever they are read.

#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/bytes/identity.h"

namespace npyfs {

using Digest = std::array<std::byte, 32>;

// SHA-256.
Digest sha256(std::string_view text);

// A value, made by KeyWriter.
struct KeptKey {
  static constexpr std::size_t kNameLength = 32;

  std::string text;   // a line "name=value" for each thing that the bytes depend on
  std::string label;  // what a person calls the array; says nothing about its bytes
  Digest digest;      // of `text`

  // The first half of the digest in hex: what its files in the cache folder are called. Another
  // array of the same name is told by the text.
  std::string name() const;
};

// Whether a file of the cache folder can have this name, without its extension.
bool is_kept_name(std::string_view name);

// Puts a key together; the order of the calls counts.
class KeyWriter {
 public:
  KeyWriter();

  // One thing that the bytes depend on: format, array, dtype, shape, layout, options of decoding,
  // the version of a decoder. Any bytes may stand in `value`.
  KeyWriter& add(std::string_view name, std::string_view value);
  // The identity of every source, in the order in which the array has them.
  KeyWriter& add_sources(std::span<const Identity> sources);

  // Nothing where a source has no identity (it lies in memory): nobody could tell whether its bytes
  // are still the same.
  std::optional<KeptKey> finish(std::string label) const;

 private:
  std::string text_;
  bool is_known_ = true;
};

}  // namespace npyfs
