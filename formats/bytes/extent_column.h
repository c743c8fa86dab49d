// SPDX-License-Identifier: Apache-2.0
//
// Where the records of one source lie: four numbers while their stride and size are all equal,
// 8 bytes a record otherwise.

#pragma once

#include <cstdint>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/compact_numbers.h"

namespace npyfs {

// Built by one thread, then immutable.
class ExtentColumn {
 public:
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
  };

  void append(std::uint64_t offset, std::uint64_t nbytes) {
    offsets_.append(offset);
    nbytes_.append(nbytes);
  }

  std::uint64_t size() const { return offsets_.size(); }
  Place operator[](std::uint64_t index) const { return {offsets_[index], nbytes_[index]}; }
  // Whether every record has one size and one distance to the next.
  bool equal() const {
    return offsets_.is_progression() && nbytes_.is_progression() && nbytes_.stride() == 0;
  }
  // For equal() only: of one record, its size.
  std::uint64_t stride() const { return size() == 1 ? nbytes_[0] : offsets_.stride(); }
  // How many records from `index` on lie back to back without a gap and have one size; at least 1.
  std::uint64_t run(std::uint64_t index) const {
    return equal() && stride() == nbytes_[0] ? size() - index : 1;
  }
  void shrink() {
    offsets_.shrink();
    nbytes_.shrink();
  }

  void write(PageWriter& page) const {
    offsets_.write(page);
    nbytes_.write(page);
  }
  // Throws kCorrupt where the page does not hold as many offsets as sizes.
  static ExtentColumn read(PageReader& page) {
    ExtentColumn column;
    column.offsets_ = CompactNumbers::read(page);
    column.nbytes_ = CompactNumbers::read(page);
    PageReader::require(column.offsets_.size() == column.nbytes_.size());
    return column;
  }

 private:
  CompactNumbers offsets_;
  CompactNumbers nbytes_;
};

}  // namespace npyfs
