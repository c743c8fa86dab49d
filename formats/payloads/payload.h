// SPDX-License-Identifier: Apache-2.0
//
// What is inside a record: payload bytes become array items.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "formats/payloads/image.h"
#include "formats/record_table.h"

namespace npyfs {

// As many first bytes of a payload as its kind and extension are found by.
inline constexpr std::size_t kMagicNbytes = 16;

// Payloads that are decoded whole have at most this many stored bytes; more is damage of the
// record. A shard's members may be decoded from much less themselves.
inline constexpr std::uint64_t kMostStoredNbytes = std::uint64_t{1} << 30;

// The first record that has bytes and, if it is these that tell what all are, matches its checksum.
// Where it is large, or many fail, the first is believed.
std::optional<std::uint64_t> first_payload(const Field& field, const Verifier& verifier);

// Bytes as they are: uint8 [nbytes] each.
std::shared_ptr<const Column> make_raw_column(std::shared_ptr<const ByteColumn> bytes);

// Bytes declared to be items of this type; without a shape [nbytes / itemsize]. inspect() throws
// kCorrupt for a record of another size; `table` names it.
std::shared_ptr<const Column> make_declared_column(std::shared_ptr<const ByteColumn> bytes,
                                                   const RecordTable& table, DType dtype,
                                                   std::optional<Shape> shape);

// A field whose payloads are all of one kind.
struct PayloadField {
  std::shared_ptr<const ByteColumn> bytes;
  const RecordTable& table;
  // Says of a payload that surprises whether it is damaged.
  const Verifier& verifier;
  // An extension or the user says what the payloads are: one that begins as nothing known is
  // damaged.
  bool named = false;
  std::optional<ImageSize> image{};  // --image
};

// The makers of the table in payload_table.cc.

// Each payload a whole .npy file; its array is the item. Reads every header once. Throws
// kUnsupported, naming the record, where one is of another kind or dtype or holds Python objects,
// and where none begins as a .npy file.
std::shared_ptr<const Column> make_npy_column(const PayloadField& field);

// Each payload an image, uint8 [height, width, channels], all of field.image where it is given.
// Reads every header once. Throws kUnsupported, naming it, where one is no image and nobody said
// that it is.
std::shared_ptr<const Column> make_image_column(const PayloadField& field);

// Each payload audio, [frames, channels]: plain samples of a WAV as they are stored, int16 or int32
// of what is compressed. Reads every header once, of mp3 the headers of all frames. Throws as
// make_image_column.
std::shared_ptr<const Column> make_audio_column(const PayloadField& field);

// A piece of audio, in seconds.
struct AudioCut {
  double start = 0;
  double end = 0;
};

// Worth a warning about a piece; it is no damage.
enum class CutFinding {
  kBeginsBehindEnd,  // it is empty
  kOfTruncatedWave,  // the payload promises more samples than are there
};

struct AudioCuts {
  // The piece that is wanted of a record; nothing: all of its payload.
  std::function<std::optional<AudioCut>(std::uint64_t record)> find;
  std::function<void(std::uint64_t record, CutFinding finding)> report;
};

struct AudioPieces {
  std::shared_ptr<const Column> column;
  // What is stored of each piece: its samples where they lie as they are, else the whole payload.
  std::shared_ptr<const ByteColumn> stored;
};

// As make_audio_column, of pieces: frames trunc(start * rate) up to, without it, trunc(end * rate),
// as far as there are any. Many records may be cut from one payload: its header is read once.
// `field` and `cuts` are used only while the columns are made.
AudioPieces make_audio_pieces(const PayloadField& field, const AudioCuts& cuts);

// Each payload text, <U as wide as the longest; a byte that is not UTF-8 becomes a lone surrogate,
// a record without the field an empty text. Reads every payload. Throws kUnsupported where one is
// longer than numpy takes.
std::shared_ptr<const Column> make_text_column(const PayloadField& field);

// Each payload an integer in decimal: int64, kept in memory. Reads every payload. Throws
// kUnsupported, naming it, where one is none.
std::shared_ptr<const Column> make_integer_column(const PayloadField& field);

}  // namespace npyfs
