// SPDX-License-Identifier: Apache-2.0
//
// Parts of a pickled sample as array items.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/bytes/dtype.h"
#include "formats/payloads/pickle.h"

namespace npyfs {

// How the item's bytes are had.
enum class PickleSource : std::uint8_t {
  kAbsent,   // None: there is no item
  kStored,   // they lie in the pickle, from `place` on
  kValue,    // `place` itself, its first bytes
  kText,     // UTF-8 in the pickle, `nbytes` from `place` on
  kRebuilt,  // from the objects
  kNothing,  // an empty list: no rows of whatever type
};

struct PickleItem {
  PickleSource source = PickleSource::kAbsent;
  // Of text <U, little-endian, as wide as the longest.
  DType dtype;
  Shape shape;
  std::uint64_t place = 0;
  std::uint64_t nbytes = 0;
};

// An item of a pickle of so many bytes has at most this many: objects and texts may be repeated by
// the memo, and a text is as wide as the longest.
std::uint64_t most_item_nbytes(std::uint64_t pickle_nbytes);

// What the object is as an array item: numbers, text, bytes, numpy's arrays and scalars, and lists
// of numbers or text, nested as long as they are rectangular, as np.array makes them. Throws
// kUnsupported, saying what it is, for anything else and for more than most_item_nbytes().
PickleItem describe_pickle(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle);

// Fills `out` with the item's bytes in C order, its elements as `dtype`: that of the item, or of
// text a wider one. Throws kCorrupt where the object is no such item.
void build_item(const PickleTree& tree, PickleRef ref, PayloadBytes& pickle, const DType& dtype,
                std::span<std::byte> out);

}  // namespace npyfs
