// SPDX-License-Identifier: Apache-2.0
//
// What is inside a record: payload bytes become array items.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/format.h"

namespace npyfs {

// What a field's bytes are.
enum class PayloadKind {
  kRaw,    // uint8 [nbytes]
  kNpy,    // a whole .npy file
  kImage,  // jpeg, png or webp: shown as bytes
};

// As many first bytes of a payload as its kind and extension are found by.
inline constexpr std::size_t kMagicNbytes = 16;

// The kind of the payload of `record`: by the field's extension, else by the payload's first bytes.
PayloadKind find_payload_kind(const Field& field, std::uint64_t record);

// Whether a payload that begins with `head`, which may be short, is a jpeg, png or webp.
bool is_image(std::span<const std::byte> head);

// The extension a file in records/ gets from the first bytes of its content ("jpg", "png", "npy",
// ...); "bin" where nothing fits. `head` may be short.
std::string_view extension_by_magic(std::span<const std::byte> head);

// Bytes as they are: uint8 [nbytes] each.
std::shared_ptr<const Column> make_raw_column(std::shared_ptr<const ByteColumn> bytes);

// Bytes declared to be items of this type; without a shape [nbytes / itemsize]. inspect() throws
// kCorrupt for a record of another size; `table` names it.
std::shared_ptr<const Column> make_declared_column(std::shared_ptr<const ByteColumn> bytes,
                                                   const RecordTable& table, DType dtype,
                                                   std::optional<Shape> shape);

// Each payload a whole .npy file; its array is the item. Reads every header once. Throws
// kUnsupported, naming the record, where one is not a .npy file or holds Python objects.
std::shared_ptr<const Column> make_npy_column(std::shared_ptr<const ByteColumn> bytes,
                                              const RecordTable& table);

}  // namespace npyfs
