// SPDX-License-Identifier: Apache-2.0
//
// A set of record numbers that costs next to nothing where it is sparse or made of runs: which
// records are damaged.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "formats/bytes/index_page.h"

namespace npyfs {

// Built by one thread, then immutable and free for any.
class RecordSet {
 public:
  RecordSet();
  ~RecordSet();
  RecordSet(RecordSet&&) noexcept;
  RecordSet& operator=(RecordSet&&) noexcept;

  void add(std::uint64_t record);
  // To be called once after the last change: makes runs out of what is dense.
  void optimize();

  bool contains(std::uint64_t record) const;
  bool empty() const;
  std::uint64_t size() const;
  // The least member from `record` on.
  std::optional<std::uint64_t> next(std::uint64_t record) const;

  // In CRoaring's portable form.
  void write(PageWriter& page) const;
  // Copies it: sets are small. Throws kCorrupt where the page holds no set.
  static RecordSet read(PageReader& page);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npyfs
