// SPDX-License-Identifier: Apache-2.0
//
// A table of records made in a test: bytes or items of known type, mapped or decoded, with keys,
// damage and checksums as the test wants them.

#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"
#include "formats/extents.h"
#include "formats/record_table.h"
#include "tests/support/fake_source.h"

namespace npyfs::testing {

// Of a typed field the item, of a field of bytes its `bytes` alone.
struct FakeItem {
  std::string bytes;
  DType dtype = DType::simple("|u1");
  Shape shape;
  bool present = true;
  bool undecodable = false;  // decode() throws kCorrupt
};

struct FakeField {
  std::string name = "x";
  std::vector<FakeItem> items;
  bool typed = false;
  bool decoded = false;  // a typed item is stored with all its bits flipped
  bool uniform = false;  // the typed column says so
  // Bytes between the records; the checksum lies there if there is room, else behind all.
  std::uint64_t gap = 0;
  std::string extension;
  bool time_series = false;
  bool sparse = false;
};

struct FakeRecords {
  std::string name = "fake";
  std::vector<FakeField> fields;
  KeyKind key_kind = KeyKind::kNone;
  std::vector<std::int64_t> int_keys = {};
  std::vector<std::string> text_keys = {};
  // Whole records; what is said of a size is Damage::nbytes.
  std::map<std::uint64_t, Damage> damage = {};
  // Of the first field. A failing record has a bit of its last byte flipped.
  bool checksums = false;
  Checksum::Kind checksum_kind = Checksum::Kind::kCrc32;
  std::set<std::uint64_t> failing = {};
  std::int64_t mtime_ns = 0;
};

inline FakeField bytes_field(const std::string& name, const std::vector<std::string>& payloads) {
  FakeField field;
  field.name = name;
  for (const std::string& payload : payloads) {
    field.items.push_back({payload, DType::simple("|u1"), {payload.size()}});
  }
  return field;
}

// Items of one type: each row of `shapes` with its bytes.
inline FakeField typed_field(const std::string& name, const std::string& dtype,
                             const std::vector<std::pair<Shape, std::string>>& items) {
  FakeField field;
  field.name = name;
  field.typed = true;
  for (const auto& [shape, bytes] : items) {
    field.items.push_back({bytes, DType::simple(dtype), shape});
  }
  return field;
}

inline Damage fake_damage(const std::string& text, std::optional<std::uint64_t> nbytes = {}) {
  return {Error(ErrorKind::kCorrupt, text), nbytes};
}

class FakeTable : public RecordTable, public Checksums {
 public:
  explicit FakeTable(FakeRecords records) : records_(std::move(records)) {
    for (std::size_t i = 0; i < records_.fields.size(); ++i) {
      add_field(records_.fields[i], i == 0);
    }
  }

  std::uint64_t size() const override {
    return records_.fields.empty() ? 0 : records_.fields.front().items.size();
  }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return {sources_.begin(), sources_.end()}; }
  KeyKind key_kind() const override { return records_.key_kind; }
  std::int64_t int_key(std::uint64_t record) const override { return records_.int_keys[record]; }
  std::string_view text_key(std::uint64_t record) const override {
    return records_.text_keys[record];
  }
  const Damage* damage(std::uint64_t record) const override {
    const auto found = records_.damage.find(record);
    return found != records_.damage.end() ? &found->second : nullptr;
  }
  std::uint64_t damaged_count() const override { return records_.damage.size(); }
  std::optional<Checksum> checksum(std::uint64_t record) const override {
    return records_.checksums ? std::optional(checksums_[record]) : std::nullopt;
  }
  std::string name_of(std::uint64_t record) const override { return record_name(*this, record); }

  // Of the field at `index`.
  const FakeSource& source(std::size_t index = 0) const { return *sources_[index]; }
  const FakeRecords& made_of() const { return records_; }

 private:
  // Where the records of one field lie.
  struct Stored : ByteColumn {
    const FakeTable* table = nullptr;
    const FakeField* field = nullptr;
    std::shared_ptr<const FakeSource> source;
    std::vector<Extent> extents;

    std::uint64_t size() const override { return extents.size(); }
    bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
      out.clear();
      if (field->items[record].present) {
        out.push_back(extents[record]);
      }
      return field->items[record].present;
    }
    const Damage* damage(std::uint64_t record) const override { return table->damage(record); }
    Guard guard(std::uint64_t record) const override {
      return table->records_.checksums ? Guard{table, record, 1} : Guard{};
    }
    std::uint64_t run(std::uint64_t record) const override {
      std::uint64_t next = record + 1;
      while (next < size() && !damage(next) && field->items[next].present &&
             extents[next].nbytes == extents[record].nbytes &&
             extents[next].offset == extents[next - 1].offset + extents[next - 1].nbytes) {
        ++next;
      }
      return next - record;
    }
    std::optional<std::uint64_t> equal_nbytes() const override {
      for (std::uint64_t i = 0; i < size(); ++i) {
        if (damage(i) || !field->items[i].present || extents[i].nbytes != extents[0].nbytes) {
          return std::nullopt;
        }
      }
      return size() > 0 ? std::optional(extents[0].nbytes) : std::nullopt;
    }
  };

  struct Typed : Column {
    std::shared_ptr<const Stored> stored;

    const FakeItem& at(std::uint64_t record) const { return stored->field->items[record]; }
    std::uint64_t size() const override { return stored->size(); }
    void inspect(std::uint64_t record, Item& item) const override {
      item.damage = stored->damage(record);
      item.present = at(record).present;
      item.dtype = at(record).dtype;
      item.shape = at(record).shape;
    }
    std::optional<Item> uniform() const override {
      if (!stored->field->uniform || size() == 0) {
        return std::nullopt;
      }
      Item item;
      inspect(0, item);
      return item;
    }
    bool decoded(std::uint64_t /*record*/) const override { return stored->field->decoded; }
    void plan(std::uint64_t record, ByteRange range, Plan& plan) const override {
      plan_stored(*stored, record, range, plan);
    }
    void decode(std::uint64_t record, std::span<std::byte> out,
                DecodeContext& context) const override {
      context.require_intact(stored->guard(record));
      if (at(record).undecodable) {
        throw Error(ErrorKind::kCorrupt,
                    record_name(*stored->table, record) + " cannot be decoded");
      }
      read_stored(*stored, record, 0, out);
      for (std::byte& byte : out) {
        byte = ~byte;
      }
    }
    std::uint64_t run(std::uint64_t record) const override {
      return stored->field->decoded ? 1 : stored->run(record);
    }
  };

  void add_field(const FakeField& field, bool is_first) {
    auto stored = std::make_shared<Stored>();
    stored->table = this;
    stored->field = &field;
    const bool summed = is_first && records_.checksums;
    std::string bytes;
    std::string sums;
    for (const FakeItem& item : field.items) {
      std::string payload = item.present ? item.bytes : "";
      if (field.decoded) {
        for (char& c : payload) {
          c = static_cast<char>(~c);
        }
      }
      stored->extents.push_back({nullptr, bytes.size(), payload.size()});
      bytes += payload;
      const std::uint64_t after = bytes.size();
      bytes.append(field.gap, '#');
      if (summed) {
        Checksum checksum;
        checksum.kind = records_.checksum_kind;
        const std::uint32_t sum = checksum_of(checksum.kind, std::as_bytes(std::span(payload)));
        checksum.payload = stored->extents.back();
        checksum.stored.nbytes = sizeof sum;
        const std::string text(reinterpret_cast<const char*>(&sum), sizeof sum);
        if (field.gap >= sizeof sum) {
          checksum.stored.offset = after;
          bytes.replace(after, sizeof sum, text);
        } else {
          checksum.stored.offset = sums.size();  // from where `sums` will begin
          sums += text;
        }
        checksums_.push_back(checksum);
      }
    }
    const std::uint64_t sums_begin = bytes.size();
    const auto source =
        std::make_shared<FakeSource>(is_first ? records_.name : records_.name + "." + field.name,
                                     bytes + sums, records_.mtime_ns);
    for (Extent& extent : stored->extents) {
      extent.source = source.get();
    }
    if (summed) {
      for (Checksum& checksum : checksums_) {
        checksum.payload.source = checksum.stored.source = source.get();
        checksum.stored.offset += sums.empty() ? 0 : sums_begin;
      }
      for (const std::uint64_t record : records_.failing) {
        const Extent& payload = stored->extents[record];
        source->flip(payload.offset + payload.nbytes - 1);
      }
    }
    stored->source = source;
    sources_.push_back(source);
    Field made;
    made.name = field.name;
    made.extension = field.extension;
    made.time_series = field.time_series;
    made.sparse = field.sparse;
    if (field.typed) {
      auto typed = std::make_shared<Typed>();
      typed->stored = stored;
      made.typed = typed;
    } else {
      made.bytes = stored;
    }
    fields_.push_back(std::move(made));
    stored_.push_back({field.extension, stored});
  }

  const FakeRecords records_;
  std::vector<std::shared_ptr<const FakeSource>> sources_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
  std::vector<Checksum> checksums_;
};

inline std::shared_ptr<const FakeTable> make_table(FakeRecords records) {
  return std::make_shared<const FakeTable>(std::move(records));
}

inline std::shared_ptr<const FakeTable> make_table(FakeField field,
                                                   const std::string& name = "fake") {
  FakeRecords records;
  records.name = name;
  records.fields = {std::move(field)};
  return make_table(std::move(records));
}

// The kind and text of the Error that `action` ends with.
struct Refusal {
  std::optional<ErrorKind> kind;
  std::string text;
};

template <typename Action>
Refusal refusal_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

}  // namespace npyfs::testing
