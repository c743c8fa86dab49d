// SPDX-License-Identifier: Apache-2.0
//
// NAME_annotations.csv: what is heard when. DAS: src/das/annot.py, src/das/make_dataset.py.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"

namespace npyfs {

// One row of the file.
struct Annotation {
  std::string name;
  // NaN in `start`: the row only says that there is such a class.
  double start_seconds = 0;
  double stop_seconds = 0;
  std::uint64_t line = 0;

  bool marks() const { return start_seconds == start_seconds; }
  // Whether the row says of its class that it is of events, points in time, not of segments.
  bool is_event() const;
};

// In file order. Throws kCorrupt with the line where a column is missing or a field is no number.
std::vector<Annotation> parse_annotations(std::string_view text, const std::string& name);
std::vector<Annotation> read_annotations(const ByteSource& source);

// The samples [begin, end) of a recording of `frames` that an annotation marks, as DAS's
// make_annotation_matrix does: numbers cut towards zero, one sample at least for an event, and as
// Python's slices have it, clipped at the end and counted from the end where negative.
struct FrameRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
FrameRange marked_frames(const Annotation& annotation, double rate_hz, std::uint64_t frames);

}  // namespace npyfs
