// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"
#include "formats/bytes/value_access.h"

namespace npyfs {

namespace {

// Consolidated metadata of a large store has some thousand bytes for each array.
constexpr std::uint64_t kMostDocumentNbytes = std::uint64_t{256} << 20;

}  // namespace

bool names_node(std::string_view name) {
  return name == ".zgroup" || name == ".zarray" || name == "zarr.json" || name == ".zmetadata";
}

std::optional<Document> Documents::find(const std::string& key) const {
  SourcePtr source = open_source(key);
  if (source != nullptr) {
    return Document{parse(key, read(key)), std::move(source)};
  }
  const auto found = gathered_.find(key);
  if (found == gathered_.end()) {
    return std::nullopt;
  }
  return Document{found->second.first, found->second.second};
}

void Documents::gather(const std::string& prefix, const Dict& metadata, const std::string& suffix,
                       const SourcePtr& source) {
  for (const auto& [path, value] : metadata) {
    if (as_dict(&value) != nullptr && is_key(path)) {
      gathered_.emplace(join_keys(prefix, path) + suffix, std::pair(*as_dict(&value), source));
    }
  }
}

std::vector<std::string> Documents::children(const std::string& prefix) const {
  std::vector<std::string> names;
  if (prefix.empty() || storage_.has_folder(prefix)) {
    for (const Storage::Entry& entry : storage_.list(prefix)) {
      if (entry.kind == Storage::Kind::kFolder &&
          !storage_.goes_round(join_keys(prefix, entry.name))) {
        names.push_back(entry.name);
      }
    }
  }
  const std::string folder = prefix.empty() ? "" : prefix + "/";
  for (auto at = gathered_.lower_bound(folder);
       at != gathered_.end() && at->first.starts_with(folder); ++at) {
    const std::size_t slash = at->first.find('/', folder.size());
    if (slash != std::string::npos) {
      names.push_back(at->first.substr(folder.size(), slash - folder.size()));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Null where there is none.
SourcePtr Documents::open_source(const std::string& key) const {
  if (SourcePtr archive = storage_.archive()) {
    return storage_.has_file(key) ? archive : nullptr;
  }
  try {
    return storage_.open(key);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kNotFound) {
      return nullptr;
    }
    storage_.kind_of(key);  // says which folder it is that forbids to look
    throw;
  }
}

std::string Documents::read(const std::string& key) const {
  const auto value = storage_.open_value(key, {nullptr, opened_at_ns_});
  if (value == nullptr || value->nbytes() > kMostDocumentNbytes) {
    throw file_error(ErrorKind::kUnsupported, storage_.name_of(key),
                     fmt::format("it has {} bytes, expected metadata of at most {}",
                                 value == nullptr ? 0 : value->nbytes(), kMostDocumentNbytes));
  }
  std::string text(value->nbytes(), '\0');
  value->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

Dict Documents::parse(const std::string& key, const std::string& text) const {
  try {
    Value value = parse_json(text);
    if (Dict* dict = std::get_if<Dict>(&value.v)) {
      return std::move(*dict);
    }
  } catch (const Error& error) {
    throw file_error(ErrorKind::kCorrupt, storage_.name_of(key), error.what());
  }
  throw file_error(ErrorKind::kCorrupt, storage_.name_of(key),
                   "it is no JSON object, expected one");
}

}  // namespace npyfs
