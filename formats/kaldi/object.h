// SPDX-License-Identifier: Apache-2.0
//
// What a Kaldi table holds: objects of some kind at some place. See FORMAT.md.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/payloads/wav.h"

namespace npyfs {

enum class ObjectKind : std::uint8_t {
  kFloatMatrix,   // FM, or text
  kDoubleMatrix,  // DM
  kCompressed,    // CM: a byte per value, four marks per column
  kCompressed2,   // CM2
  kCompressed3,   // CM3
  kSparse,        // SM, or text
  kFloatVector,   // FV, or text
  kDoubleVector,  // DV
  kInt32,
  kFloat,
  kDouble,
  kBool,
  kInt32Vector,
  kInt32Vectors,
  kInt32Pairs,
  kFloatPairs,
  kPosterior,
  kTokens,  // words, always text
  kWave,
  kPcm,  // samples cut out of a wave
  // Files of another format, in kaldiio's envelope:
  kNumpy,  // .npy
  kAudio,  // whatever soundfile reads
  // Not settled until the whole table has been looked at:
  kIntFamily,  // begins with a four-byte number, which six kinds do
  kLine,       // a line of text
};

// One object. `rows` and `cols` are
//   matrices             their dimensions (0, 0 if empty)
//   vectors, kInt32Vector, pairs    rows: elements
//   kInt32Vectors, kPosterior       rows: inner lists; cols: elements of all of them
//   kTokens, kLine       rows: words; cols: code points of the words joined by blanks
//   waves                rows: frames; cols: channels
//   files                nothing: `offset` and `nbytes` are the file's
struct Object {
  std::uint64_t offset = 0;  // in its source
  std::uint64_t nbytes = 0;  // as stored, header included
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::uint32_t source = 0;
  std::uint32_t header_nbytes = 0;  // of binary objects: the data begins so far behind `offset`
  ObjectKind kind = ObjectKind::kFloatMatrix;
  bool text = false;
  bool began = false;      // an object does lie here, whether or not the rest of it is whole
  bool row_break = false;  // a text in brackets with a line end in it: no vector
  bool big_endian = false;
  WavSample sample = WavSample::kInt16;
  // kPcm only: one channel out of several; 0: all there are.
  std::uint16_t channels = 0;
  std::uint16_t channel = 0;
  std::array<std::uint8_t, 6> zero{};  // instead of padding: objects are kept as they are
};

// Part of a matrix or vector that a script asks for; rows and columns that are there.
struct ObjectRange {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_col = 0;
  std::uint32_t cols = 0;
};

// A sparse matrix takes a few bytes whatever its dimensions: larger ones are refused.
constexpr std::uint64_t kMostDenseElements = std::uint64_t{1} << 26;

inline bool is_matrix(ObjectKind kind) { return kind <= ObjectKind::kSparse; }
inline bool is_vector(ObjectKind kind) {
  return kind == ObjectKind::kFloatVector || kind == ObjectKind::kDoubleVector;
}
inline bool is_wave(ObjectKind kind) {
  return kind == ObjectKind::kWave || kind == ObjectKind::kPcm;
}

inline bool is_file(ObjectKind kind) {
  return kind == ObjectKind::kNumpy || kind == ObjectKind::kAudio;
}

// What --decode x= and messages call the kind: "matrix", "int32vector".
std::string_view kind_name(ObjectKind kind);

}  // namespace npyfs
