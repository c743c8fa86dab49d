// SPDX-License-Identifier: Apache-2.0
//
// What is inside a record: payload bytes become array items.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/format.h"
#include "formats/payloads/image.h"

namespace npyfs {

// What a field's bytes are.
enum class PayloadKind {
  kRaw,      // uint8 [nbytes]
  kNpy,      // a whole .npy file
  kImage,    // jpeg, png or webp
  kAudio,    // WAV, flac, ogg, mp3
  kInteger,  // in decimal
  kText,     // UTF-8
  kPickle,   // see pickle_fields.h
};

// As many first bytes of a payload as its kind and extension are found by.
inline constexpr std::size_t kMagicNbytes = 16;

// Payloads that are decoded whole have at most this many stored bytes; more is damage of the
// record. A shard's members may be decoded from much less themselves.
inline constexpr std::uint64_t kMostStoredNbytes = std::uint64_t{1} << 30;

// The kind of the payload of `record`: by the field's extension, else by the payload's first bytes.
// Bytes alone never tell a pickle, a number or text.
PayloadKind find_payload_kind(const Field& field, std::uint64_t record);

// The kind that --decode calls so: "npy", "jpg", "cls", "txt", any extension that has one. Nothing
// for other words.
std::optional<PayloadKind> payload_kind_of(std::string_view extension);

// The first record that has bytes and, if it is these that tell what all are, matches its checksum.
// Where it is large, or many fail, the first is believed.
std::optional<std::uint64_t> first_payload(const Field& field);

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

// Each payload a whole .npy file; its array is the item. Reads every header once. `named`: an
// extension says that these are .npy files, so that one that begins as nothing known is damaged.
// Throws kUnsupported, naming the record, where one is of another kind or dtype or holds Python
// objects, and where none begins as a .npy file.
std::shared_ptr<const Column> make_npy_column(std::shared_ptr<const ByteColumn> bytes,
                                              const RecordTable& table, bool named);

// Each payload an image, uint8 [height, width, channels], all of `size` where it is given. Reads
// every header once. `named`: an extension says that these are images, so that one that is none is
// damaged; else throws kUnsupported, naming it.
std::shared_ptr<const Column> make_image_column(std::shared_ptr<const ByteColumn> bytes,
                                                const RecordTable& table,
                                                const std::optional<ImageSize>& size, bool named);

// Each payload audio, [frames, channels]: plain samples of a WAV as they are stored, int16 or int32
// of what is compressed. Reads every header once, of mp3 the headers of all frames. `named` as of
// images.
std::shared_ptr<const Column> make_audio_column(std::shared_ptr<const ByteColumn> bytes,
                                                const RecordTable& table, bool named);

// Each payload text, <U as wide as the longest; a byte that is not UTF-8 becomes a lone surrogate,
// a record without the field an empty text. Reads every payload. Throws kUnsupported where one is
// longer than numpy takes.
std::shared_ptr<const Column> make_text_column(std::shared_ptr<const ByteColumn> bytes,
                                               const RecordTable& table);

// Each payload an integer in decimal: int64, kept in memory. Reads every payload. Throws
// kUnsupported, naming it, where one is none.
std::shared_ptr<const Column> make_integer_column(std::shared_ptr<const ByteColumn> bytes,
                                                  const RecordTable& table);

}  // namespace npyfs
