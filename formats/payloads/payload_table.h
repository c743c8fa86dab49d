// SPDX-License-Identifier: Apache-2.0
//
// The payloads there are: how each is recognised and what makes array items of it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/payloads/payload.h"
#include "formats/record_table.h"

namespace npyfs {

// A row of the table in payload_table.cc. A payload gives what it has by name.
struct Payload {
  // The first bytes; of a RIFF file also its form, which follows its name and 4 bytes of size.
  struct Magic {
    std::string_view begin;
    std::string_view form{};
  };
  using Warn = std::function<void(const std::string& text)>;

  // As --decode calls it; a file in records/ that begins with the magic has it as extension.
  const char* name = nullptr;
  // Extensions of file names, in lower case, without the dot.
  std::vector<std::string_view> extensions{};
  std::vector<Magic> magics{};
  // Its items as an array. Throws kUnsupported where the field is shown as stored bytes instead.
  std::shared_ptr<const Column> (*make)(const PayloadField& field) = nullptr;
  // Pixels.
  bool is_image = false;
  // Payloads of no bytes are items, too.
  bool may_be_empty = false;

  // Of payloads that become fields instead: whether the payload of `record` is one, by the field's
  // extension or by all of its bytes, and the fields; nothing, and a line to `warn`, where they
  // stay bytes.
  bool (*is_fields)(const Field& field, std::uint64_t record) = nullptr;
  std::optional<std::vector<Field>> (*make_fields)(const Field& field, const RecordTable& table,
                                                   const Verifier& verifier,
                                                   const Warn& warn) = nullptr;
};

std::span<const Payload> payloads();

// The payload with this extension, in any case. Null where there is none: the bytes are shown.
const Payload* payload_of_extension(std::string_view extension);

// What the payload of `record` is: by the field's extension, else by the payload's first bytes,
// which never tell a pickle, a number or text. Null where nothing fits: the bytes are shown.
const Payload* find_payload(const Field& field, std::uint64_t record);

// The payload kind that turns this record into fields, or null.
const Payload* find_fields_payload(const Field& field, std::uint64_t record);

// Whether a payload that begins with `head`, which may be short, is an image.
bool is_image(std::span<const std::byte> head);

// The extension a file in records/ gets from the first bytes of its content ("jpg", "png", "npy",
// ...); "bin" where nothing fits. `head` may be short.
std::string_view extension_by_magic(std::span<const std::byte> head);

}  // namespace npyfs
