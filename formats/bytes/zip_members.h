// SPDX-License-Identifier: Apache-2.0
//
// The members of a zip archive and their checksums, so that what is read where it lies is verified
// as any record with a checksum is.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/bytes/checksums.h"
#include "formats/bytes/zip.h"

namespace npyfs {

// Record i is member i of the directory. Only members that are stored as they are have a checksum
// to ask for: decoding verifies the others. Immutable; any thread.
class ZipMembers : public Checksums {
 public:
  // Reads the directory. Throws as ZipDirectory.
  explicit ZipMembers(SourcePtr archive);

  const SourcePtr& archive() const { return archive_; }
  const ZipDirectory& directory() const { return directory_; }

  std::uint64_t size() const { return directory_.size(); }
  // Reads the member's local header.
  std::optional<Checksum> checksum(std::uint64_t member) const override;
  std::string name_of(std::uint64_t member) const override;

 private:
  SourcePtr archive_;
  ZipDirectory directory_;
};

}  // namespace npyfs
