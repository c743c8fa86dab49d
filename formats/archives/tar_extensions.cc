// SPDX-License-Identifier: Apache-2.0

#include "formats/archives/tar_extensions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "formats/bytes/byte_range.h"

namespace npyfs {

namespace {

std::uint64_t need_decimal(std::string_view key, std::string_view value, const TarFault& fault) {
  const auto number = parse_decimal(value);
  if (!number) {
    throw fault(fmt::format("'{}' of a pax header is '{}', expected a number", key,
                            printable(value.substr(0, 40))));
  }
  return *number;
}

// pax 0.1: "offset,nbytes,offset,nbytes".
void parse_map(std::string_view text, TarExtensions& extensions, const TarFault& fault) {
  extensions.pieces.clear();
  while (!text.empty()) {
    SparsePiece piece;
    for (std::uint64_t* number : {&piece.offset, &piece.nbytes}) {
      const std::size_t comma = std::min(text.find(','), text.size());
      *number = need_decimal("GNU.sparse.map", text.substr(0, comma), fault);
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
    add_piece(extensions.pieces, piece, fault);
  }
}

void take_sparse(std::string_view key, std::string_view value, TarExtensions& extensions,
                 const TarFault& fault) {
  const std::string_view word = key.substr(std::string_view("GNU.sparse.").size());
  extensions.sparse = true;
  if (word == "major") {
    const std::uint64_t major = need_decimal(key, value, fault);
    if (major > 1) {
      throw fault(fmt::format("the version of a sparse map is {}, expected 0 or 1", major));
    }
    extensions.sparse_map_in_payload = major == 1;
  } else if (word == "name") {
    extensions.sparse_name = value;
  } else if (word == "size" || word == "realsize") {
    extensions.real_size = need_decimal(key, value, fault);
  } else if (word == "offset") {
    add_piece(extensions.pieces, {need_decimal(key, value, fault), 0}, fault);
  } else if (word == "numbytes") {
    if (extensions.pieces.empty()) {
      throw fault("the first piece of a sparse map has a size and no offset, expected both");
    }
    extensions.pieces.back().nbytes = need_decimal(key, value, fault);
  } else if (word == "map") {
    parse_map(value, extensions, fault);
  }
}

void take_record(std::string_view key, std::string_view value, TarExtensions& extensions,
                 const TarFault& fault) {
  const auto text = [&] {
    if (value.find('\0') != std::string_view::npos) {
      throw fault(fmt::format("'{}' of a pax header has a NUL in it, expected a name", key));
    }
    return value.empty() ? std::nullopt : std::optional<std::string>(value);
  };
  if (key == "path") {
    extensions.path = text();
  } else if (key == "linkpath") {
    extensions.link_path = text();
  } else if (key == "size") {
    extensions.size = value.empty() ? std::nullopt : std::optional(need_decimal(key, value, fault));
  } else if (key.starts_with("GNU.sparse.")) {
    take_sparse(key, value, extensions, fault);
  }
}

}  // namespace

void TarExtensions::clear() {
  long_name.reset();
  long_link.reset();
  path.reset();
  link_path.reset();
  size.reset();
  pax = sparse = sparse_map_in_payload = false;
  sparse_name.reset();
  real_size.reset();
  pieces.clear();
}

void parse_pax(std::string_view records, TarExtensions& extensions, const TarFault& fault) {
  extensions.pax = true;
  // The header's size may include padding.
  while (!records.empty() && records.front() != '\0') {
    std::size_t nbytes = 0;
    const auto [end, error] =
        std::from_chars(records.data(), records.data() + records.size(), nbytes);
    const auto digits = static_cast<std::size_t>(end - records.data());
    if (error != std::errc() || digits == 0 || nbytes > records.size() || nbytes < digits + 3 ||
        records[digits] != ' ' || records[nbytes - 1] != '\n') {
      throw fault(
          fmt::format("a record of a pax header begins '{}', expected its length, a blank, "
                      "KEY=VALUE and a line end within {} bytes",
                      printable(records.substr(0, 20)), records.size()));
    }
    const std::string_view record = records.substr(digits + 1, nbytes - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw fault(fmt::format("a record of a pax header is '{}', expected KEY=VALUE",
                              printable(record.substr(0, 40))));
    }
    take_record(record.substr(0, equals), record.substr(equals + 1), extensions, fault);
    records.remove_prefix(nbytes);
  }
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(number) : std::nullopt;
}

void add_piece(std::vector<SparsePiece>& pieces, const SparsePiece& piece, const TarFault& fault) {
  if (pieces.size() >= kMostClaimedPieces) {
    throw fault(
        fmt::format("the map of a sparse member has more than {} pieces, expected fewer; "
                    "store it whole",
                    kMostClaimedPieces));
  }
  pieces.push_back(piece);
}

void check_sparse(std::vector<SparsePiece>& pieces, std::uint64_t real_size, std::uint64_t stored,
                  const TarFault& fault) {
  if (real_size > kMostSparseNbytes) {
    throw fault(fmt::format("the real size of a sparse member is {}, expected at most {}",
                            real_size, kMostSparseNbytes));
  }
  std::uint64_t end = 0;
  std::uint64_t sum = 0;
  std::vector<SparsePiece> merged;
  for (const SparsePiece& piece : pieces) {
    if (piece.offset < end || !lies_within(piece.offset, piece.nbytes, real_size) ||
        piece.nbytes > stored - sum) {
      throw fault(
          fmt::format("a piece of a sparse member is bytes {} + {}, expected it behind {}, "
                      "within {}, and {} stored bytes at most",
                      piece.offset, piece.nbytes, end, real_size, stored - sum));
    }
    const bool touches =
        !merged.empty() && piece.offset == merged.back().offset + merged.back().nbytes;
    end = piece.offset + piece.nbytes;
    sum += piece.nbytes;
    if (touches) {
      merged.back().nbytes += piece.nbytes;
    } else if (piece.nbytes > 0) {
      merged.push_back(piece);
    } else {
      continue;
    }
    if (merged.size() > kMostSparsePieces) {
      throw fault(
          fmt::format("a sparse member has more than {} pieces, expected fewer; store it "
                      "whole",
                      kMostSparsePieces));
    }
  }
  pieces = std::move(merged);
}

}  // namespace npyfs
