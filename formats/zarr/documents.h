// SPDX-License-Identifier: Apache-2.0
//
// The metadata documents of a zarr store: each under its own key, or else gathered in one.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/storage.h"
#include "formats/bytes/value.h"

namespace npyfs {

// Whether `name`, the last part of a key, is that of metadata which says what stands at a prefix.
bool names_node(std::string_view name);

// A metadata document and what it was read from.
struct Document {
  Dict content;
  SourcePtr source;
};

// One thread.
class Documents {
 public:
  // `storage` must outlive it; `opened_at_ns` is what its take_time() said.
  Documents(const Storage& storage, std::int64_t opened_at_ns)
      : storage_(storage), opened_at_ns_(opened_at_ns) {}

  // Nothing where there is none. Throws kCorrupt, naming it, where it is no JSON object.
  std::optional<Document> find(const std::string& key) const;

  // Adds what `metadata` has, whose keys begin behind "<prefix>/".
  void gather(const std::string& prefix, const Dict& metadata, const std::string& suffix,
              const SourcePtr& source);

  // The folders directly below `prefix`, sorted, with those that are only gathered: groups and
  // arrays, if they have metadata.
  std::vector<std::string> children(const std::string& prefix) const;

 private:
  SourcePtr open_source(const std::string& key) const;
  std::string read(const std::string& key) const;
  Dict parse(const std::string& key, const std::string& text) const;

  const Storage& storage_;
  std::int64_t opened_at_ns_;
  std::map<std::string, std::pair<Dict, SourcePtr>> gathered_;
};

}  // namespace npyfs
