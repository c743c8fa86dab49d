// SPDX-License-Identifier: Apache-2.0
//
// What is inside a record: payload bytes become array items.

#pragma once

#include <functional>
#include <memory>
#include <optional>
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

// The kind of the payload of `record`: by the field's extension, else by the payload's first bytes.
PayloadKind find_payload_kind(const Field& field, std::uint64_t record);

// The extension a file in records/ gets from the first bytes of its content ("jpg", "png", "npy",
// ...); "bin" where nothing fits. `head` may be short.
std::string_view extension_by_magic(std::span<const std::byte> head);

// The first bytes of the record's stored payload, at most 16; empty where it has none or cannot be
// read.
std::vector<std::byte> read_head(const ByteColumn& column, std::uint64_t record);

// Bytes as they are: uint8 [nbytes] each.
std::shared_ptr<const Column> make_raw_column(std::shared_ptr<const ByteColumn> bytes);

// Bytes declared to be items of this type; inspect() throws kCorrupt for a record of another size.
// `name_of` names a record in messages.
std::shared_ptr<const Column> make_declared_column(
    std::shared_ptr<const ByteColumn> bytes, DType dtype, Shape shape,
    std::function<std::string(std::uint64_t)> name_of);

// Each payload a whole .npy file; its array is the item. Reads every header once.
std::shared_ptr<const Column> make_npy_column(std::shared_ptr<const ByteColumn> bytes);

}  // namespace npyfs
