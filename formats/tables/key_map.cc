// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/key_map.h"

#include <fmt/format.h>

#include "formats/bytes/endian.h"
#include "formats/bytes/string_list.h"
#include "formats/bytes/utf8.h"
#include "formats/extents.h"
#include "formats/registry.h"
#include "formats/table_overlay.h"
#include "formats/tables/join.h"

namespace npyfs {

namespace {

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

StringList values_of_field(const RecordTable& table, const Field& field, const Verifier& verifier) {
  StringList values;
  StrictReader reader(verifier);
  Item item;
  std::vector<std::byte> text;
  for (std::uint64_t record = 0; record < table.size(); ++record) {
    item.present = true;
    item.damage = nullptr;
    field.typed->inspect(record, item);
    if (item.damage != nullptr) {
      throw item.damage->error;
    }
    if (!item.present) {
      values.append({});
      continue;
    }
    if (item.dtype.kind != 'U') {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--map: {} is {}, expected text that names each record's key",
                              field.name, item.dtype.text()));
    }
    text.assign(item.dtype.itemsize, std::byte{0});
    read_item(*field.typed, record, text, reader);
    values.append(from_utf32(text));
  }
  return values;
}

TablePtr with_keys(TablePtr table, StringList keys) {
  auto mapped = std::make_shared<TableOverlay>(std::move(table));
  mapped->set_text_keys(std::move(keys));
  return mapped;
}

SourcePtr open_map(const std::string& map) {
  try {
    return open_named_file(map);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kNotFound) {
      throw;
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("--map: the first source of the split has no text field {}, and there "
                            "is no such file, expected one of them (kaldi:DIR has utt2spk)",
                            printable(map)));
  }
}

}  // namespace

TablePtr map_keys(TablePtr table, const std::string& map, const Verifier& verifier) {
  for (const Field& field : table->fields()) {
    if (field.name == map && field.typed != nullptr) {
      return with_keys(table, values_of_field(*table, field, verifier));
    }
  }
  const auto values = read_key_map(*open_map(map));
  if (!values) {
    return table;
  }
  if (table->key_kind() == KeyKind::kNone) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--map {}: the records of {} have no keys, expected keys that the file "
                            "gives values",
                            printable(map), printable(table->sources().front()->name())));
  }
  StringList keys;
  for (std::uint64_t record = 0; record < table->size(); ++record) {
    const auto found = values->find(key_text(*table, record));
    if (found == values->end()) {
      throw file_error(ErrorKind::kCorrupt, map,
                       fmt::format("it lacks {}, expected every key", record_name(*table, record)));
    }
    keys.append(found->second);
  }
  return with_keys(std::move(table), std::move(keys));
}

}  // namespace npyfs
