// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/zip_members.h"

#include <utility>

namespace npyfs {

ZipMembers::ZipMembers(SourcePtr archive) : archive_(std::move(archive)), directory_(*archive_) {}

std::optional<Checksum> ZipMembers::checksum(std::uint64_t member) const {
  const ZipMember found = directory_[member];
  if (!found.readable() || found.method != ZipMember::kStored) {
    return std::nullopt;
  }
  Checksum checksum;
  checksum.kind = Checksum::Kind::kCrc32;
  checksum.payload = {archive_.get(), zip_data_offset(*archive_, found), found.nbytes};
  checksum.stored = {archive_.get(), found.crc_offset, sizeof found.crc32};
  return checksum;
}

std::string ZipMembers::name_of(std::uint64_t member) const {
  return record_name(member, directory_[member].name);
}

}  // namespace npyfs
