// SPDX-License-Identifier: Apache-2.0
//
// Reads elements by libhdf5. For the child only.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/hdf5/child_describe.h"
#include "formats/hdf5/child_handle.h"
#include "formats/hdf5/child_type.h"

namespace npyfs {

// The box `start`, `count` of the data set `path`, dense in C order; of its bytes `nbytes` from
// `skip_nbytes` on. Axes that belong to the element type are read whole whatever the box says of
// them.
struct BoxRequest {
  std::string path;
  ReadForm form = ReadForm::kPlain;
  std::uint32_t characters = 0;  // of kText: code points of each
  Shape start;
  Shape count;
  std::uint64_t skip_nbytes = 0;
  std::uint64_t nbytes = 0;
};

// Answers with kData frames. Sequences that were read last are kept: the library has them only
// whole, and a long one is asked for a piece at a time.
class BoxReader {
 public:
  explicit BoxReader(hid_t file);
  ~BoxReader();
  BoxReader(const BoxReader&) = delete;
  BoxReader& operator=(const BoxReader&) = delete;

  void read(const BoxRequest& request, const SendFrame& send);

 private:
  class Sequences;

  hid_t file_;
  std::unique_ptr<const Sequences> sequences_;
};

// Elements of the data set, all of one block in memory; `bytes` are as `type` has them.
void read_elements(hid_t dataset, const NpyType& type, const Shape& start, const Shape& count,
                   void* bytes);

// The most code points any string of the data set has, but at least 1. Reads them all, and says
// kProgress from time to time.
std::uint32_t longest_text(hid_t dataset, const NpyType& type, const Shape& shape,
                           const SendFrame& send);
// Where each sequence of a data set with one axis ends, in items; likewise.
std::vector<std::uint64_t> sequence_ends(hid_t dataset, const NpyType& type, const Shape& shape,
                                         const SendFrame& send);

// How many whole rows (along axis 0) make about 1 MiB, at least one.
std::uint64_t block_rows(const Shape& shape, std::uint64_t element_nbytes);

}  // namespace npyfs
