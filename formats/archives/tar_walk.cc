// SPDX-License-Identifier: Apache-2.0

#include "formats/archives/tar_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "formats/bytes/byte_range.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kMostNameNbytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostPaxNbytes = std::uint64_t{8} << 20;
// So far behind an archive's end another one is looked for.
constexpr std::uint64_t kMostEndNbytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kEndWindowNbytes = std::uint64_t{64} << 10;
constexpr std::size_t kMostDigits = 24;  // of a line in a sparse map

using Block = std::array<std::byte, kTarBlock>;

std::uint64_t padded(std::uint64_t nbytes) {
  return (nbytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool is_extension(char type) {
  return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}

TarMember::Kind kind_of(const TarHeader& header, std::string_view name) {
  switch (header.type()) {
    case '\0':
      // v7 knows no directories.
      return name.ends_with('/') ? TarMember::Kind::kDirectory : TarMember::Kind::kFile;
    case '0':
    case '7':
    case 'S':
      return TarMember::Kind::kFile;
    case '1':
      return TarMember::Kind::kHardLink;
    case '2':
      return TarMember::Kind::kSymbolicLink;
    case '5':
      return TarMember::Kind::kDirectory;
    default:
      return TarMember::Kind::kOther;
  }
}

}  // namespace

Error TarWalk::fault(std::uint64_t at, const std::string& text) const {
  return corrupt_at(source_.name(), at,
                    text + "; the archive is damaged there, cut short, or still being written");
}

bool TarWalk::next(TarMember& member) {
  extensions_.clear();
  name_at_fault_.clear();
  begins_archive_ = false;
  member_at_ = at_;
  bool has_extensions = false;
  for (;;) {
    header_at_ = at_;
    const std::uint64_t left = source_.nbytes() - at_;
    if (left < kTarBlock) {
      const bool clean = all_zero(window_.at(at_, left)) && !has_extensions;
      if (!clean) {
        throw fault(at_, fmt::format("a header has {} bytes, expected {}", left, kTarBlock));
      }
      return false;
    }
    Block block;
    std::memcpy(block.data(), window_.at(at_, kTarBlock).data(), kTarBlock);
    const TarHeader header(block);
    if (header.byte(0) == std::byte{0} && header.all_zero()) {
      if (has_extensions) {
        throw fault(at_, "a member's name or size is followed by zeroes, expected its header");
      }
      if (!skip_end_blocks()) {
        return false;
      }
      continue;
    }
    if (!header.checksum_holds()) {
      throw fault(at_, "the checksum of a header does not match, expected the sum of its bytes");
    }
    if (!is_extension(header.type())) {
      describe(header, member);
      return true;
    }
    const auto nbytes = header.size();
    if (!nbytes || *nbytes < 0) {
      throw fault(at_ + 124, "the size of an extension header is no number of bytes");
    }
    read_extension(header.type(), static_cast<std::uint64_t>(*nbytes));
    at_ = std::min(at_ + kTarBlock + padded(static_cast<std::uint64_t>(*nbytes)), source_.nbytes());
    has_extensions = has_extensions || header.type() != 'g';
  }
}

// Moves to the archive behind; false where there is none.
bool TarWalk::skip_end_blocks() {
  const std::uint64_t begin = at_;
  ended_ = true;
  begins_archive_ = true;
  const std::uint64_t limit = at_ + std::min(source_.nbytes() - at_, kMostEndNbytes);
  search_given_up_ = limit < source_.nbytes();
  std::vector<std::byte> bytes;
  while (at_ < limit) {
    bytes.resize(std::min(limit - at_, at_ % kEndWindowNbytes == 0 ? kEndWindowNbytes : kTarBlock));
    source_.read_at(at_, bytes);
    for (std::size_t done = 0; done < bytes.size(); done += kTarBlock) {
      const std::size_t n = std::min(kTarBlock, bytes.size() - done);
      if (!all_zero(std::span(bytes).subspan(done, n))) {
        at_ += done;
        member_at_ = at_;
        search_given_up_ = false;
        if (is_tar_header(std::span(bytes).subspan(done, n))) {
          return true;
        }
        garbage_ = {at_, at_ - begin};
        return false;
      }
    }
    at_ += bytes.size();
  }
  return false;
}

void TarWalk::read_extension(char type, std::uint64_t nbytes) {
  const bool pax = type != 'L' && type != 'K';
  const std::uint64_t most = pax ? kMostPaxNbytes : kMostNameNbytes;
  const std::uint64_t begin = at_ + kTarBlock;
  if (nbytes > most || !lies_within(begin, nbytes, source_.nbytes())) {
    throw fault(at_ + 124, fmt::format("the size of an extension header is {}, expected at most {}",
                                       nbytes, std::min(most, source_.nbytes() - begin)));
  }
  const auto bytes = window_.at(begin, nbytes);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!pax) {
    text = text.substr(0, text.find('\0'));
    (type == 'L' ? extensions_.long_name : extensions_.long_link) = std::string(text);
    return;
  }
  const TarFault place = [&](const std::string& what) { return fault(begin, what); };
  if (type == 'g') {
    // Nothing that a member needs may come from there; its framing must be whole all the same.
    TarExtensions ignored;
    parse_pax(text, ignored, place);
  } else {
    parse_pax(text, extensions_, place);
  }
}

void TarWalk::describe(const TarHeader& header, TarMember& member) {
  ended_ = false;
  const TarExtensions& more = extensions_;
  if (more.sparse_name) {
    name_ = *more.sparse_name;
  } else if (more.long_name) {
    name_ = *more.long_name;
  } else if (more.path) {
    name_ = *more.path;
  } else {
    name_ = header.prefix();
    if (!name_.empty()) {
      name_ += '/';
    }
    name_ += header.name();
  }
  name_at_fault_ = name_;
  link_target_ =
      more.long_link ? *more.long_link : more.link_path.value_or(std::string(header.link_target()));
  member.name = name_;
  member.link_target = link_target_;
  member.kind = kind_of(header, name_);
  member.header_offset = member_at_;
  member.begins_archive = begins_archive_;
  member.sparse = false;
  member.pieces.clear();
  member.offset = at_ + kTarBlock;
  if (header.type() == 'S') {
    read_gnu_sparse(header, member);
  }
  std::uint64_t stored = stored_nbytes_of(header, member);
  if (!lies_within(member.offset, stored, source_.nbytes())) {
    throw fault(header_at_ + 124,
                fmt::format("the size of member '{}' is {}, expected at most {} as the file ends "
                            "there",
                            printable(name_), stored,
                            source_.nbytes() - std::min(source_.nbytes(), member.offset)));
  }
  at_ = std::min(member.offset + padded(stored), source_.nbytes());
  if (!member.sparse) {
    member.nbytes = stored;
  }
  if (member.kind == TarMember::Kind::kFile && (member.sparse || more.sparse)) {
    take_sparse(member, stored);
  }
}

std::uint64_t TarWalk::stored_nbytes_of(const TarHeader& header, const TarMember& member) {
  const auto claimed = header.size();
  if (!claimed || *claimed < 0) {
    throw fault(header_at_ + 124,
                claimed ? fmt::format("the size of member '{}' is {}, expected 0 or more",
                                      printable(name_), *claimed)
                        : fmt::format("the size of member '{}' is '{}', expected an octal or "
                                      "base-256 number",
                                      printable(name_), printable(header.text(124, 12))));
  }
  const std::uint64_t nbytes = extensions_.size.value_or(static_cast<std::uint64_t>(*claimed));
  switch (header.type()) {
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
      return 0;
    case '1':
      // Old archives give hard links a size but no bytes; cpio's pax archives have the bytes.
      return nbytes > 0 && (extensions_.pax || link_has_payload()) ? nbytes : 0;
    default:
      return member.kind == TarMember::Kind::kDirectory ? 0 : nbytes;
  }
}

bool TarWalk::link_has_payload() const {
  const std::uint64_t next = at_ + kTarBlock;
  if (!lies_within(next, kTarBlock, source_.nbytes())) {
    return false;
  }
  Block block;
  std::memcpy(block.data(), window_.at(next, kTarBlock).data(), kTarBlock);
  const TarHeader header(block);
  return !header.all_zero() && !header.checksum_holds();
}

// Four pieces in the header, then blocks of 21.
void TarWalk::read_gnu_sparse(const TarHeader& header, TarMember& member) {
  member.sparse = true;
  const TarFault place = [&](const std::string& what) { return fault(at_ + 386, what); };
  const auto take = [&](const TarHeader& block, std::size_t at, int count) {
    for (int i = 0; i < count; ++i, at += 24) {
      if (block.byte(at) == std::byte{0}) {
        continue;
      }
      const auto offset = block.number(at, 12);
      const auto nbytes = block.number(at + 12, 12);
      if (!offset || !nbytes || *offset < 0 || *nbytes < 0) {
        throw place("a piece of a sparse member is no offset and size, expected two numbers");
      }
      add_piece(member.pieces,
                {static_cast<std::uint64_t>(*offset), static_cast<std::uint64_t>(*nbytes)}, place);
    }
  };
  const auto real = header.number(483, 12);
  if (!real || *real < 0) {
    throw place("the real size of a sparse member is no number of bytes");
  }
  member.nbytes = static_cast<std::uint64_t>(*real);
  take(header, 386, 4);
  bool more = header.byte(482) != std::byte{0};
  while (more) {
    if (!lies_within(member.offset, kTarBlock, source_.nbytes())) {
      throw place("the map of a sparse member runs past the end of the file");
    }
    Block block;
    std::memcpy(block.data(), window_.at(member.offset, kTarBlock).data(), kTarBlock);
    const TarHeader extension(block);
    take(extension, 0, 21);
    more = extension.byte(504) != std::byte{0};
    member.offset += kTarBlock;
  }
}

void TarWalk::take_sparse(TarMember& member, std::uint64_t& stored) {
  const TarFault place = [&](const std::string& what) {
    return fault(member_at_, fmt::format("{} (member '{}')", what, printable(name_)));
  };
  if (!member.sparse) {
    member.sparse = true;
    member.pieces = extensions_.pieces;
    if (extensions_.sparse_map_in_payload) {
      read_map(member, stored);
    }
    if (!extensions_.real_size) {
      throw place("a sparse member has no real size, expected one in its pax header");
    }
    member.nbytes = *extensions_.real_size;
  }
  check_sparse(member.pieces, member.nbytes, stored, place);
}

// pax 1.0: lines of one number each at the start of the payload, padded to a block: how many
// pieces, then the offset and size of each.
void TarWalk::read_map(TarMember& member, std::uint64_t& stored) {
  const std::uint64_t begin = member.offset;
  const std::uint64_t end = begin + stored;
  std::uint64_t at = begin;
  const auto next_number = [&] {
    const auto bytes = window_.at(at, std::min<std::uint64_t>(kMostDigits, end - at));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t line_end = text.find('\n');
    const auto number = parse_decimal(text.substr(0, line_end));
    if (line_end == std::string_view::npos || !number) {
      throw fault(at, fmt::format("a line in the map of sparse member '{}' is '{}', expected a "
                                  "number",
                                  printable(name_), printable(text)));
    }
    at += line_end + 1;
    return *number;
  };
  member.pieces.clear();
  std::uint64_t left = next_number();
  if (left > kMostClaimedPieces) {
    throw fault(begin, fmt::format("the map of sparse member '{}' has {} pieces, expected at most "
                                   "{}; store it whole",
                                   printable(name_), left, kMostClaimedPieces));
  }
  for (; left > 0; --left) {
    SparsePiece piece;
    piece.offset = next_number();
    piece.nbytes = next_number();
    member.pieces.push_back(piece);
  }
  const std::uint64_t map_nbytes = std::min(padded(at - begin), stored);
  member.offset += map_nbytes;
  stored -= map_nbytes;
}

}  // namespace npyfs
