// SPDX-License-Identifier: Apache-2.0
//
// A set of record numbers that costs next to nothing where it is sparse or made of runs: which
// records are damaged, which are left out.

#pragma once

#include <cstdint>
#include <memory>

namespace npyfs {

// Built by one thread, then immutable and free for any.
class RecordSet {
 public:
  RecordSet();
  ~RecordSet();
  RecordSet(RecordSet&&) noexcept;
  RecordSet& operator=(RecordSet&&) noexcept;

  void add(std::uint64_t record);
  void add_range(std::uint64_t begin, std::uint64_t end);
  void remove(std::uint64_t record);
  // To be called once after the last change: makes runs out of what is dense.
  void optimize();

  bool contains(std::uint64_t record) const;
  bool empty() const;
  std::uint64_t size() const;
  // The member before which `rank` others stand. `rank` < size().
  std::uint64_t select(std::uint64_t rank) const;
  // How many members follow each other without a gap from the one at `rank` on; at least 1.
  std::uint64_t run(std::uint64_t rank) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npyfs
