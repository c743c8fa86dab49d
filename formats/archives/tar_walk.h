// SPDX-License-Identifier: Apache-2.0
//
// The members of a tar archive, one after another: where their stored bytes lie. Reads headers and
// no payloads.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/archives/tar_extensions.h"
#include "formats/archives/tar_header.h"
#include "formats/bytes/byte_source.h"

namespace npyfs {

struct TarMember {
  enum class Kind {
    kFile,
    kHardLink,
    kSymbolicLink,
    kDirectory,
    kOther,  // devices, FIFOs, labels, what is not known here
  };
  Kind kind = Kind::kFile;
  std::string_view name;  // as stored; valid until the next call of next(), as all of these
  std::string_view link_target;
  std::uint64_t header_offset = 0;  // of its first header, extensions included
  std::uint64_t offset = 0;         // of its first stored byte
  std::uint64_t nbytes = 0;         // of the file that it is
  bool sparse = false;
  std::vector<SparsePiece> pieces;  // of a sparse one, in the order in which they are stored
  // It stands behind the end blocks of the archive before it.
  bool begins_archive = false;
};

// One thread. The source is one archive or several, one after another.
class TarWalk {
 public:
  explicit TarWalk(const ByteSource& source) : source_(source), window_(source) {}

  // False at the end. Throws kCorrupt where the framing is lost: a header whose checksum does not
  // hold, a size that runs past the end, an extension that cannot be understood. To be called no
  // more then.
  bool next(TarMember& member);

  // After the end: whether end-of-archive blocks stood there. A writer that died leaves none.
  bool ended() const { return ended_; }
  // Bytes that readers of tar pass over.
  struct Garbage {
    std::uint64_t offset = 0;
    std::uint64_t zeroes_before = 0;  // in bytes
  };
  // After the end: what follows its blocks of zeroes and is no archive.
  const std::optional<Garbage>& garbage() const { return garbage_; }
  // After the end: whether so many zeroes follow it that what is behind them was not looked at.
  bool search_given_up() const { return search_given_up_; }
  // After next() has thrown: the name of the member whose size or extension was at fault; empty if
  // its header could not be read.
  const std::string& name_at_fault() const { return name_at_fault_; }

 private:
  bool skip_end_blocks();
  void read_extension(char type, std::uint64_t nbytes);
  void describe(const TarHeader& header, TarMember& member);
  std::uint64_t stored_nbytes_of(const TarHeader& header, const TarMember& member);
  bool link_has_payload() const;
  void read_gnu_sparse(const TarHeader& header, TarMember& member);
  void take_sparse(TarMember& member, std::uint64_t& stored);
  void read_map(TarMember& member, std::uint64_t& stored);
  Error fault(std::uint64_t at, const std::string& text) const;

  const ByteSource& source_;
  mutable WindowReader window_;
  std::uint64_t at_ = 0;         // of the next header
  std::uint64_t header_at_ = 0;  // of the one being read
  std::uint64_t member_at_ = 0;  // of the member's first header
  TarExtensions extensions_;
  std::string name_;
  std::string link_target_;
  std::string name_at_fault_;
  bool begins_archive_ = false;
  bool ended_ = false;
  bool search_given_up_ = false;
  std::optional<Garbage> garbage_;
};

}  // namespace npyfs
