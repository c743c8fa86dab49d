// SPDX-License-Identifier: Apache-2.0
//
// Maps rows to records: one kind of map for concatenated files, joins, splits, parts and shuffles.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "formats/tables/permutation.h"

namespace npyfs {

// A record of one of several sources.
struct SourceRecord {
  std::uint64_t source = 0;
  std::uint64_t record = 0;

  bool operator==(const SourceRecord&) const = default;
};

// Records [begin, end) of one source.
struct Bounds {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t size() const { return end - begin; }
};

// Maps the rows [0, size()) to records. Three kinds: runs of records that follow each other, a list
// with 8 bytes a row, and a permutation, which is computed. Immutable; any thread; a copy shares
// its tables.
class RecordMap {
 public:
  // No rows.
  RecordMap() = default;
  // The records [0, count) of source 0, in their order.
  static RecordMap all(std::uint64_t count);
  // The records of `bounds`.
  static RecordMap range(const Bounds& bounds);
  // Row i is record list[i] of source 0.
  static RecordMap list(const std::vector<std::uint64_t>& records);
  // The records [0, count) but those in `left_out` (ascending, each once).
  static RecordMap without(const std::vector<std::uint64_t>& left_out, std::uint64_t count);
  // All records of source 0, then those of source 1, and so on: counts[i] of source i.
  static RecordMap concatenation(const std::vector<std::uint64_t>& counts);
  // Row i is record (begin + i) modulo `count` of source 0.
  static RecordMap window(std::uint64_t count, std::uint64_t begin, std::uint64_t size);
  // All records that `order` permutes.
  static RecordMap permutation(std::shared_ptr<const Permutation> order);

  std::uint64_t size() const { return size_; }
  SourceRecord operator[](std::uint64_t row) const { return stretch(row).place; }

  // The place of `row`, and how many rows from it on (at least 1) are records that follow each
  // other in one source.
  struct Stretch {
    SourceRecord place;
    std::uint64_t count = 1;
  };
  Stretch stretch(std::uint64_t row) const;

  // The range [begin, end) of source 0's records if the rows are exactly these, in order; [0, 0)
  // for an empty map. Nothing otherwise.
  std::optional<Bounds> as_range() const;
  // Whether the rows are all `count` records of source 0, in their order.
  bool is_all(std::uint64_t count) const;

  // The map whose row i is this map's row outer[i]. `outer` has one source.
  RecordMap select(const RecordMap& outer) const;

 private:
  // Rows from `row` on that are the records of `place` and those that follow it.
  struct Run {
    std::uint64_t row;
    SourceRecord place;
  };
  using Runs = std::shared_ptr<const std::vector<Run>>;
  // Each row's record and, above `source_shift` bits, its source.
  struct List {
    std::shared_ptr<const std::vector<std::uint64_t>> packed;
    unsigned source_shift = 64;

    SourceRecord at(std::uint64_t row) const;
  };
  // Row i is row order[(begin + i) modulo its size] of `base`, or that record where `base` is null.
  struct Shuffled {
    std::shared_ptr<const Permutation> order;
    std::uint64_t begin = 0;
    std::shared_ptr<const RecordMap> base;
  };
  class RunBuilder;

  RecordMap(std::uint64_t size, std::variant<Runs, List, Shuffled> kind)
      : size_(size), kind_(std::move(kind)) {}

  // A map of places that follow no rule: runs where these take less memory, else a list.
  template <typename PlaceAt>
  static RecordMap gather(std::uint64_t size, const PlaceAt& place_at);
  // `outer` selects rows of a map with `count` rows. If it takes consecutive rows, where row 0
  // follows the last one, returns the first of these; nothing otherwise.
  static std::optional<std::uint64_t> window_of(const RecordMap& outer, std::uint64_t count);

  std::uint64_t size_ = 0;
  std::variant<Runs, List, Shuffled> kind_;
};

}  // namespace npyfs
