// SPDX-License-Identifier: Apache-2.0
//
// An order of records that takes no memory: a part of them, shuffled or not.

#pragma once

#include <cstdint>
#include <optional>

#include "formats/arrays/cut.h"

namespace npyfs {

// Immutable; any thread.
class RecordOrder {
 public:
  // Of `count` records: shuffled where a seed is given, of these the part.
  RecordOrder(std::uint64_t count, std::optional<std::uint64_t> seed, const Part& part);

  std::uint64_t size() const { return end_ - begin_; }
  // The record that stands at `place`, which is below size().
  std::uint64_t operator[](std::uint64_t place) const {
    return seed_ ? shuffled(begin_ + place) : begin_ + place;
  }
  // How many from `place` on (at least 1) follow each other as records, too.
  std::uint64_t run(std::uint64_t place) const { return seed_ ? 1 : size() - place; }
  bool is_shuffled() const { return seed_.has_value(); }

 private:
  std::uint64_t shuffled(std::uint64_t place) const;

  std::uint64_t count_;
  std::optional<std::uint64_t> seed_;
  unsigned half_bits_ = 1;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace npyfs
