// SPDX-License-Identifier: Apache-2.0
//
// The directory of a zip archive, and its members. Bytes: PKWARE's APPNOTE.TXT 6.3, with zip64.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/string_list.h"

namespace npyfs {

// Whether `head` begins as a zip archive does: PK 3 4, or PK 5 6 for one without members.
bool is_zip(std::span<const std::byte> head);

// What the central directory says of a member. Where its bytes begin only its local header says:
// zip_data_offset().
struct ZipMember {
  std::string_view name;  // as it is stored: any bytes; lives as long as the directory
  std::uint64_t header_offset = 0;
  std::uint64_t stored_nbytes = 0;
  std::uint64_t nbytes = 0;      // once decoded
  std::uint32_t crc32 = 0;       // of the decoded bytes
  std::uint64_t crc_offset = 0;  // where the archive has that, little-endian
  std::uint16_t method = 0;
  bool encrypted = false;

  static constexpr std::uint16_t kStored = 0;
  static constexpr std::uint16_t kDeflated = 8;
  // Anything else npyfs cannot decode.
  bool readable() const { return !encrypted && (method == kStored || method == kDeflated); }
};

// Immutable once made; any thread. 52 bytes a member and its name.
class ZipDirectory {
 public:
  // Reads the whole central directory. Throws kCorrupt, naming file and byte, where it is damaged,
  // cut, or points outside of the file; kUnsupported for one part of several.
  explicit ZipDirectory(const ByteSource& source);

  std::uint64_t size() const { return places_.size(); }
  // In the order of the directory, folders (whose names end in '/') included.
  ZipMember operator[](std::uint64_t index) const;
  // The number of the member of that name: of several the last, which is what a writer that
  // replaces members means.
  std::optional<std::uint64_t> find(std::string_view name) const;
  // Whether a later member has the same name.
  bool replaced(std::uint64_t index) const { return find(names_[index]) != index; }

 private:
  struct Place {
    std::uint64_t header_offset;
    std::uint64_t stored_nbytes;
    std::uint64_t nbytes;
    std::uint64_t entry_offset;  // in the directory
    std::uint32_t crc32;
    std::uint16_t method;
    bool encrypted;
  };
  class Parser;

  std::vector<Place> places_;
  StringList names_;
  std::vector<std::uint32_t> by_name_;  // of equal names the last alone
};

// Where the stored bytes of `member` begin. Reads its local header; throws kCorrupt where that is
// damaged or has another name, or the bytes do not lie in the archive.
std::uint64_t zip_data_offset(const ByteSource& archive, const ZipMember& member);

// The decoded bytes of `member`, whose CRC-32 has been verified, into `out`, which is member.nbytes
// long. Throws kCorrupt naming the member where it is damaged, kUnsupported where it is not
// readable().
void read_zip_member(const ByteSource& archive, const ZipMember& member, std::span<std::byte> out);

// Throws kCorrupt where a member claims to decode to more than deflate can make of its bytes: to be
// asked before memory is taken for it.
void require_plausible(const ByteSource& archive, const ZipMember& member);

}  // namespace npyfs
