// SPDX-License-Identifier: Apache-2.0
//
// What pax and GNU headers say of the member behind them: names, sizes, maps of sparse files.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/error.h"

namespace npyfs {

// Bytes of a sparse member that are stored; all others are zero.
struct SparsePiece {
  std::uint64_t offset = 0;  // in the member
  std::uint64_t nbytes = 0;
};

// What extension headers say of the next member. A field that they do not name is empty.
struct TarExtensions {
  std::optional<std::string> long_name;  // of a GNU 'L' header
  std::optional<std::string> long_link;  // of a GNU 'K' header
  std::optional<std::string> path;
  std::optional<std::string> link_path;
  std::optional<std::uint64_t> size;
  bool pax = false;  // there was a pax header

  bool sparse = false;
  bool sparse_map_in_payload = false;  // pax 1.0
  std::optional<std::string> sparse_name;
  std::optional<std::uint64_t> real_size;
  std::vector<SparsePiece> pieces;

  void clear();
};

// `text`: what is wrong, "<what> is <found>, expected <rule>".
using TarFault = std::function<Error(const std::string& text)>;

// The records of a pax header. Throws fault(...) where they are no such.
void parse_pax(std::string_view records, TarExtensions& extensions, const TarFault& fault);

// Decimal digits and nothing else.
std::optional<std::uint64_t> parse_decimal(std::string_view text);

// A read goes through all of them.
constexpr std::size_t kMostSparsePieces = 65'536;
// As they are claimed, before those that touch become one.
constexpr std::size_t kMostClaimedPieces = 16 * kMostSparsePieces;

// Appends to a map that is being read, of however many headers. Throws fault(...) where it has
// kMostClaimedPieces already.
void add_piece(std::vector<SparsePiece>& pieces, const SparsePiece& piece, const TarFault& fault);

// An array has a header, too, and is a file of less than 2^63 bytes.
constexpr std::uint64_t kMostSparseNbytes = std::uint64_t{1} << 62;

// Throws fault(...) unless the pieces rise, lie within `real_size`, add up to at most `stored`
// bytes and are few. Pieces that touch become one, empty ones none.
void check_sparse(std::vector<SparsePiece>& pieces, std::uint64_t real_size, std::uint64_t stored,
                  const TarFault& fault);

}  // namespace npyfs
