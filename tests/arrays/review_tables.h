// SPDX-License-Identifier: Apache-2.0
//
// Tables in memory whose records are damaged, unlike or many as a test wants them, and that count
// what they are asked.

#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/arrays/array.h"
#include "formats/bytes/endian.h"
#include "formats/extents.h"
#include "formats/record_table.h"

namespace npyfs::testing {

class MemorySource : public ByteSource {
 public:
  MemorySource(std::string name, std::string bytes)
      : ByteSource(std::move(name), bytes.size(), 0), bytes_(std::move(bytes)) {}

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  std::string bytes_;
};

// What a MemoryTable says of its records, and what it was asked.
struct TableState {
  std::string name;
  std::uint64_t records = 0;
  std::map<std::uint64_t, Damage> damage;
  bool verified = false;            // guards are set
  std::set<std::uint64_t> failing;  // their checksums do not match
  KeyKind key_kind = KeyKind::kNone;
  std::vector<std::string> text_keys;
  std::vector<std::int64_t> int_keys;
  const Checksums* checksums = nullptr;
  mutable std::uint64_t checksums_asked = 0;
  mutable std::uint64_t fields_asked = 0;

  const Damage* find(std::uint64_t record) const {
    const auto found = damage.find(record);
    return found != damage.end() ? &found->second : nullptr;
  }
};

// Payloads back to back; nothing where a record lacks the field.
class MemoryBytes : public ByteColumn {
 public:
  MemoryBytes(std::shared_ptr<const TableState> state,
              const std::vector<std::optional<std::string>>& payloads)
      : state_(std::move(state)) {
    std::string all;
    for (const auto& payload : payloads) {
      places_.emplace_back(all.size(), payload ? payload->size() : kAbsent);
      all += payload.value_or("");
    }
    source_ = std::make_shared<MemorySource>(state_->name, std::move(all));
  }

  std::uint64_t size() const override { return places_.size(); }
  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    out.clear();
    const auto [offset, nbytes] = places_[record];
    if (nbytes == kAbsent) {
      return false;
    }
    out.push_back({source_.get(), offset, nbytes});
    return true;
  }
  const Damage* damage(std::uint64_t record) const override { return state_->find(record); }
  Guard guard(std::uint64_t record) const override {
    return state_->verified ? Guard{state_->checksums, record, 1} : Guard{};
  }
  const SourcePtr& source() const { return source_; }

 private:
  static constexpr std::uint64_t kAbsent = UINT64_MAX;
  std::shared_ptr<const TableState> state_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places_;
  SourcePtr source_;
};

class MemoryTable : public RecordTable, public Checksums {
 public:
  explicit MemoryTable(std::string name, std::uint64_t records = 0)
      : state_(std::make_shared<TableState>()) {
    state_->name = std::move(name);
    state_->records = records;
    state_->checksums = this;
    source_ = std::make_shared<MemorySource>(state_->name, "");
    sums_ = std::make_shared<MemorySource>(state_->name, std::string(8, '\xff'));
  }

  // To be called while the table is being made.
  TableState& state() { return *state_; }
  void add_bytes(const std::string& name, const std::vector<std::optional<std::string>>& payloads) {
    auto column = std::make_shared<MemoryBytes>(state_, payloads);
    state_->records = payloads.size();
    source_ = column->source();
    stored_.push_back({name, column});
    Field field;
    field.name = name;
    field.bytes = std::move(column);
    fields_.push_back(std::move(field));
  }
  void add_typed(const std::string& name, std::shared_ptr<const Column> column) {
    Field field;
    field.name = name;
    field.typed = std::move(column);
    fields_.push_back(std::move(field));
  }
  void add_stored(const std::string& extension, std::shared_ptr<const ByteColumn> column) {
    stored_.push_back({extension, std::move(column)});
  }
  std::shared_ptr<const TableState> shared_state() const { return state_; }
  const TableState& asked() const { return *state_; }

  std::uint64_t size() const override { return state_->records; }
  const std::vector<Field>& fields() const override {
    ++state_->fields_asked;
    return fields_;
  }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return {source_}; }
  KeyKind key_kind() const override { return state_->key_kind; }
  std::int64_t int_key(std::uint64_t record) const override { return state_->int_keys[record]; }
  std::string_view text_key(std::uint64_t record) const override {
    return state_->text_keys[record];
  }
  const Damage* damage(std::uint64_t record) const override { return state_->find(record); }
  std::uint64_t damaged_count() const override { return state_->damage.size(); }
  // Of no bytes: what fails is said, not computed.
  std::optional<Checksum> checksum(std::uint64_t record) const override {
    ++state_->checksums_asked;
    Checksum checksum;
    checksum.payload = {sums_.get(), 0, 0};
    if (state_->failing.count(record) == 0) {
      checksum.stored = {zero_.get(), 0, 4};
    } else {
      checksum.stored = {sums_.get(), 0, 4};
    }
    return checksum;
  }
  std::string name_of(std::uint64_t record) const override { return record_name(*this, record); }

 private:
  std::shared_ptr<TableState> state_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
  SourcePtr source_;
  SourcePtr sums_;
  SourcePtr zero_ = std::make_shared<MemorySource>("zero", std::string(4, '\0'));
};

inline Damage damage_at(const std::string& text, std::optional<std::uint64_t> nbytes = {}) {
  return {Error(ErrorKind::kCorrupt, text), nbytes};
}

// One item of a MemoryColumn. What is decoded is stored with all bits flipped.
struct MemoryItem {
  Shape shape;
  std::string bytes;
  bool present = true;
  bool decoded = false;
  std::optional<Damage> damage = std::nullopt;
};

// Items one after another in memory, so that mapped neighbours of one shape are a run.
class MemoryColumn : public Column {
 public:
  MemoryColumn(const std::string& dtype, std::vector<MemoryItem> items)
      : dtype_(DType::simple(dtype)), items_(std::move(items)) {
    for (const MemoryItem& item : items_) {
      begins_.push_back(stored_.size());
      stored_ += item.bytes;
    }
  }

  std::uint64_t size() const override { return items_.size(); }
  void inspect(std::uint64_t record, Item& item) const override {
    const MemoryItem& mine = items_[record];
    item.damage = mine.damage ? &*mine.damage : nullptr;
    item.present = mine.present;
    item.dtype = dtype_;
    item.shape = mine.shape;
  }
  bool decoded(std::uint64_t record) const override { return items_[record].decoded; }
  void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
    ++plans_asked;
    plan.add_memory(
        reinterpret_cast<const std::byte*>(stored_.data()) + begins_[record] + range.begin,
        range.nbytes());
  }
  void decode(std::uint64_t record, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    ++decodes_asked;
    ASSERT_EQ(out.size(), items_[record].bytes.size());
    std::memcpy(out.data(), items_[record].bytes.data(), out.size());
  }
  std::uint64_t run(std::uint64_t record) const override {
    std::uint64_t next = record + 1;
    while (next < size() && is_mapped(next) && is_mapped(record) &&
           items_[next].shape == items_[record].shape) {
      ++next;
    }
    return next - record;
  }

  mutable std::uint64_t plans_asked = 0;
  mutable std::uint64_t decodes_asked = 0;

 private:
  bool is_mapped(std::uint64_t record) const {
    return items_[record].present && !items_[record].decoded && !items_[record].damage;
  }

  DType dtype_;
  std::vector<MemoryItem> items_;
  std::string stored_;
  std::vector<std::uint64_t> begins_;
};

// The bytes of one chunk, '?' where its decoder says that they are damaged.
inline std::string decode_chunk(const ChunkSource& chunks, std::uint64_t chunk) {
  DecodeContext context(trusting_verifier());
  std::string bytes(chunks.chunk_nbytes(chunk), '\0');
  chunks.decode(chunk, std::as_writable_bytes(std::span(bytes)), context);
  for (const auto& [range, why] : context.take_damage()) {
    bytes.replace(range.begin, range.nbytes(), range.nbytes(), '?');
  }
  return bytes;
}

// What the plan stands for, '?' for each byte that cannot be read.
inline std::string read_plan(const Plan& plan) {
  std::string all;
  for (const Piece& piece : plan.pieces()) {
    std::string bytes(piece.nbytes, '?');
    switch (piece.kind) {
      case Piece::Kind::kExtent:
        piece.source->read_at(piece.offset, std::as_writable_bytes(std::span(bytes)));
        break;
      case Piece::Kind::kChunk:
        bytes = decode_chunk(*piece.chunks, piece.chunk).substr(piece.offset, piece.nbytes);
        break;
      case Piece::Kind::kMemory:
        std::memcpy(bytes.data(), piece.memory, piece.nbytes);
        break;
      case Piece::Kind::kFill:
        for (std::uint64_t i = 0; i < piece.nbytes; ++i) {
          bytes[i] = static_cast<char>(piece.memory[(piece.offset + i) % piece.pattern_nbytes]);
        }
        break;
      case Piece::Kind::kDamaged:
        break;
    }
    all += bytes;
  }
  return all;
}

// The same of `range`, in as many plans as it takes.
inline std::string read_range(const Array& array, ByteRange range) {
  std::string all;
  while (all.size() < range.nbytes()) {
    Plan plan;
    array.plan({range.begin + all.size(), range.end}, plan);
    EXPECT_GT(plan.nbytes(), 0U);
    all += read_plan(plan);
  }
  return all;
}

inline std::string read_all(const Array& array) { return read_range(array, {0, array.nbytes()}); }

// Numbers as they lie in a file.
template <typename T>
std::string packed(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace npyfs::testing
