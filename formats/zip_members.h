// SPDX-License-Identifier: Apache-2.0
//
// The members of a zip archive as records, so that what is read where it lies is verified like any
// record with a checksum.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/bytes/zip.h"
#include "formats/format.h"

namespace npyfs {

// Record i is member i of the directory; its key is its name. Only members that are stored as they
// are have a checksum to ask for: decoding verifies the others. Immutable; any thread.
class ZipMembers : public RecordTable {
 public:
  // Reads the directory. Throws as ZipDirectory.
  explicit ZipMembers(SourcePtr archive);

  const SourcePtr& archive() const { return archive_; }
  const ZipDirectory& directory() const { return directory_; }

  std::uint64_t size() const override { return directory_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return {archive_}; }
  KeyKind key_kind() const override { return KeyKind::kText; }
  std::string_view text_key(std::uint64_t record) const override { return directory_[record].name; }
  // Reads the member's local header.
  std::optional<Checksum> checksum(std::uint64_t record) const override;

 private:
  SourcePtr archive_;
  ZipDirectory directory_;
  std::vector<Field> fields_;
  std::vector<StoredUnit> stored_;
};

}  // namespace npyfs
