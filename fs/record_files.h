// SPDX-License-Identifier: Apache-2.0
//
// The files below records/: one for each stored unit of each record. Their names are made when they
// are asked for, so that a million of them cost no memory.

#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/plan.h"
#include "formats/record_table.h"
#include "fs/file.h"

namespace npyfs {

// Any thread. A file is a number: record * units + unit.
class RecordFiles {
 public:
  explicit RecordFiles(std::shared_ptr<const RecordTable> table);

  // The number of possible files; exists() tells whether one is there.
  std::uint64_t count() const { return table_->size() * units_; }
  bool exists(std::uint64_t file) const;

  // "<key>.<extension>", made safe; the n-th record of one key gets "<key>~n", as does the n-th
  // whose key looks the same once it is made safe.
  std::string name(std::uint64_t file) const;
  std::optional<std::uint64_t> find(std::string_view name) const;

  // Stored bytes. A damaged record has the size its format claims, at least 1, so that reading it
  // is asked for and can be refused.
  std::uint64_t nbytes(std::uint64_t file) const;
  void plan_read(std::uint64_t file, ByteRange range, Plan& plan) const;

  const std::vector<SourcePtr>& sources() const { return sources_; }

 private:
  const StoredUnit& unit(std::uint64_t file) const { return table_->stored()[file % units_]; }
  std::string extension(std::uint64_t file) const;
  std::string key_text(std::uint64_t record) const;
  int compare_keys(std::uint64_t a, std::uint64_t b) const;
  int compare_key(std::uint64_t record, std::string_view key) const;
  const std::vector<std::uint64_t>& order() const;
  struct Equal {
    std::uint64_t first, last;  // in order()
  };
  Equal equal_range(std::string_view key) const;
  std::string stem(std::uint64_t record) const;
  struct Taken {
    std::uint64_t first;  // in order(), of the records of a key
    std::uint64_t n;      // "<key>~n" is a key, too
    auto operator<=>(const Taken&) const = default;
  };
  std::span<const Taken> taken_numbers(const Equal& equal) const;
  void find_taken() const;
  std::vector<std::uint64_t> find_stem(std::string_view stem) const;
  void find_shortened(std::string_view stem, std::vector<std::uint64_t>& records) const;
  void find_numbered(const std::string& key, std::uint64_t n,
                     std::vector<std::uint64_t>& records) const;

  std::shared_ptr<const RecordTable> table_;
  std::vector<SourcePtr> sources_;
  std::uint64_t units_;
  // Records by key as names have it, made at the first question that needs it: 8 bytes a record.
  mutable std::once_flag order_made_;
  mutable std::vector<std::uint64_t> order_;
  // Sorted; of keys that several records have. Nearly always none.
  mutable std::once_flag taken_found_;
  mutable std::vector<Taken> taken_;
  // Records whose name may have been shortened, by the hash in that name; nearly always none.
  mutable std::once_flag long_keys_found_;
  mutable std::vector<std::pair<std::uint64_t, std::uint64_t>> long_keys_;
};

// One file below records/; `files` must outlive it. Small: made when it is asked for.
class RecordFile final : public File {
 public:
  RecordFile(const RecordFiles& files, std::uint64_t file) : files_(&files), file_(file) {}

  std::uint64_t nbytes() const override { return files_->nbytes(file_); }
  void plan_read(ByteRange range, Plan& plan) const override {
    files_->plan_read(file_, range, plan);
  }
  const std::vector<SourcePtr>& sources() const override { return files_->sources(); }

 private:
  const RecordFiles* files_;
  std::uint64_t file_;
};

}  // namespace npyfs
