// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/key_map.h"

#include <fmt/format.h>

#include <map>

#include "formats/bytes/endian.h"
#include "formats/bytes/line_reader.h"
#include "formats/bytes/string_list.h"
#include "formats/bytes/utf8.h"
#include "formats/extents.h"

namespace npyfs {

namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";
constexpr std::size_t kMostLineNbytes = 1 << 20;

class MappedTable : public RecordTable {
 public:
  MappedTable(TablePtr base, StringList keys) : base_(std::move(base)), keys_(std::move(keys)) {}

  std::uint64_t size() const override { return base_->size(); }
  const std::vector<Field>& fields() const override { return base_->fields(); }
  const std::vector<StoredUnit>& stored() const override { return base_->stored(); }
  std::vector<SourcePtr> sources() const override { return base_->sources(); }
  KeyKind key_kind() const override { return KeyKind::kText; }
  std::string_view text_key(std::uint64_t record) const override { return keys_[record]; }

 private:
  TablePtr base_;
  StringList keys_;
};

// Texts have no checksums and are decoded one by one.
class NoContext : public DecodeContext {
  void require_intact(const RecordTable& /*table*/, std::uint64_t /*record*/) override {}
  void mark_damaged(ByteRange /*range*/, std::exception_ptr why) override {
    std::rethrow_exception(why);
  }
};

// Back from numpy's <U; lone surrogates are bytes that were no UTF-8.
std::string from_utf32(std::span<const std::byte> text) {
  std::string out;
  for (; text.size() >= 4; text = text.subspan(4)) {
    const auto point = load_le<std::uint32_t>(text.data());
    if (point >= 0xdc80 && point <= 0xdcff) {
      out += static_cast<char>(point - 0xdc00);
    } else if (point != 0) {
      append_utf8(out, point);
    }
  }
  return out;
}

StringList values_of_field(const Column& column) {
  StringList values;
  NoContext context;
  Item item;
  std::vector<std::byte> text;
  for (std::uint64_t record = 0; record < column.size(); ++record) {
    item.present = true;
    item.damage = nullptr;
    column.inspect(record, item);
    if (item.damage != nullptr || !item.present || item.dtype.kind != 'U') {
      values.append({});
      continue;
    }
    text.assign(item.dtype.itemsize, std::byte{0});
    column.decode(record, text, context);
    values.append(from_utf32(text));
  }
  return values;
}

std::map<std::string, std::string> read_map(const std::string& path) {
  std::map<std::string, std::string> map;
  const SourcePtr file = FileSource::open(path, path);
  LineReader lines(*file, kMostLineNbytes);
  for (std::string_view line; lines.next(line);) {
    const std::size_t key = line.find_first_not_of(kBlanks);
    const std::size_t key_end = std::min(line.find_first_of(kBlanks, key), line.size());
    const std::size_t value = line.find_first_not_of(kBlanks, key_end);
    if (key == std::string_view::npos || value == std::string_view::npos) {
      throw corrupt_at(
          path, lines.offset(),
          fmt::format("line {} has no two words, expected a key and its value", lines.number()));
    }
    const std::size_t value_end = std::min(line.find_first_of(kBlanks, value), line.size());
    map.emplace(line.substr(key, key_end - key), line.substr(value, value_end - value));
  }
  return map;
}

}  // namespace

TablePtr map_keys(TablePtr table, const std::string& map) {
  for (const Field& field : table->fields()) {
    if (field.name == map && field.typed != nullptr) {
      return std::make_shared<MappedTable>(table, values_of_field(*field.typed));
    }
  }
  const auto values = read_map(map);
  StringList keys;
  for (std::uint64_t record = 0; record < table->size(); ++record) {
    const auto found = values.find(std::string(table->text_key(record)));
    if (found == values.end()) {
      throw file_error(ErrorKind::kCorrupt, map,
                       fmt::format("it lacks {}, expected every key", record_name(*table, record)));
    }
    keys.append(found->second);
  }
  return std::make_shared<MappedTable>(std::move(table), std::move(keys));
}

}  // namespace npyfs
