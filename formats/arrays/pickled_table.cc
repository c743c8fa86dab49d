// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/pickled_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/payloads/payload_table.h"
#include "formats/table_overlay.h"

namespace npyfs {

namespace {

// The payload that turns this field into several; null if the field stays as it is.
const Payload* maker_of_fields(const Field& field, const std::string& name,
                               const FieldChoices& choices) {
  if (field.bytes == nullptr || field.typed != nullptr) {
    return nullptr;
  }
  const auto layout = choices.layout.find(name);
  if (layout != choices.layout.end() && layout->second == Layout::kBytes) {
    return nullptr;
  }
  const auto decode = choices.decode.find(name);
  if (decode != choices.decode.end()) {
    const Payload* payload = payload_of_extension(decode->second);
    return payload != nullptr && payload->make_fields != nullptr ? payload : nullptr;
  }
  const auto first = first_payload(field, *choices.verifier);
  return first ? find_fields_payload(field, *first) : nullptr;
}

// Parts of the pickles in `field` whose names are taken go by that of the field before theirs: so
// they are called in --name, which must rename them.
void resolve_clashes(const Field& field, const RecordTable& table, const FieldChoices& choices,
                     const std::vector<Field>& before, std::vector<Field>& made) {
  const auto is_taken = [&](const std::string& name) {
    const auto has = [&](const std::vector<Field>& fields) {
      return std::any_of(fields.begin(), fields.end(),
                         [&](const Field& other) { return other.name == name; });
    };
    const bool is_keys = name == "keys" && table.key_kind() != KeyKind::kNone;
    return is_keys || (name != field.name && (has(table.fields()) || has(before)));
  };
  for (Field& part : made) {
    if (!is_taken(part.name)) {
      continue;
    }
    const std::string alias =
        (field.extension.empty() ? field.name : field.extension) + "_" + part.name;
    if (choices.rename.count(alias) == 0) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{0}.npy would be both {1} and the part {0} of the pickles in {2}{3}; "
              "--name {4}=OTHER renames the part",
              printable(part.name),
              part.name == "keys" ? "the keys of the records" : "field " + printable(part.name),
              printable(field.name),
              field.extension.empty() ? "" : " (." + printable(field.extension) + ")",
              printable(alias)));
    }
    part.name = alias;
  }
}

}  // namespace

TablePtr unpack_pickles(TablePtr table, const FieldChoices& choices, const std::string& array,
                        const std::function<void(const std::string&)>& warn) {
  std::vector<Field> fields;
  bool any = false;
  for (const Field& field : table->fields()) {
    const std::string& name = array.empty() || field.name != "x" ? field.name : array;
    const Payload* maker = maker_of_fields(field, name, choices);
    auto made = maker != nullptr ? maker->make_fields(field, *table, *choices.verifier, warn)
                                 : std::nullopt;
    any = any || made;
    if (made && array.empty()) {
      resolve_clashes(field, *table, choices, fields, *made);
    }
    if (made) {
      std::move(made->begin(), made->end(), std::back_inserter(fields));
    } else {
      fields.push_back(field);
    }
  }
  if (!any) {
    return table;
  }
  auto unpacked = std::make_shared<TableOverlay>(std::move(table));
  unpacked->set_fields(std::move(fields));
  return unpacked;
}

}  // namespace npyfs
