// SPDX-License-Identifier: Apache-2.0
//
// The metadata documents of a zarr store: each under its own key, or else gathered in one.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/value.h"
#include "formats/zarr/key_store.h"

namespace npyfs {

// A metadata document and what it was read from.
struct Document {
  Dict content;
  SourcePtr source;
};

// One thread.
class Documents {
 public:
  // `keys` must outlive it.
  explicit Documents(const KeyStore& keys) : keys_(keys) {}

  // Nothing where there is none. Throws kCorrupt, naming it, where it is no JSON object.
  std::optional<Document> find(const std::string& key) const;

  // Adds what `metadata` has, whose keys begin behind "<prefix>/".
  void gather(const std::string& prefix, const Dict& metadata, const std::string& suffix,
              const SourcePtr& source);

  // As KeyStore::children, with those that are only gathered.
  std::vector<std::string> children(const std::string& prefix) const;

 private:
  std::string read(const std::string& key) const;
  Dict parse(const std::string& key, const std::string& text) const;

  const KeyStore& keys_;
  std::map<std::string, std::pair<Dict, SourcePtr>> gathered_;
};

}  // namespace npyfs
