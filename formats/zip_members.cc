// SPDX-License-Identifier: Apache-2.0

#include "formats/zip_members.h"

#include <utility>

namespace npyfs {

ZipMembers::ZipMembers(SourcePtr archive) : archive_(std::move(archive)), directory_(*archive_) {}

std::optional<Checksum> ZipMembers::checksum(std::uint64_t record) const {
  const ZipMember member = directory_[record];
  if (!member.readable() || member.method != ZipMember::kStored) {
    return std::nullopt;
  }
  Checksum checksum;
  checksum.kind = Checksum::Kind::kCrc32;
  checksum.payload = {archive_.get(), zip_data_offset(*archive_, member), member.nbytes};
  checksum.stored = {archive_.get(), member.crc_offset, sizeof member.crc32};
  return checksum;
}

}  // namespace npyfs
