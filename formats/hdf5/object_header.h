// SPDX-License-Identifier: Apache-2.0
//
// The header of an HDF5 object, as far as it says how a data set's chunks are indexed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"

namespace npyfs {

inline constexpr std::uint64_t kUndefinedAddress = ~std::uint64_t{0};

struct StructureWidths {
  std::size_t address = 8;
  std::size_t length = 8;
};

// Whether structures must have the checksums that they carry. Only for tests that look behind them:
// changed bytes have the right one in one of 2^32 cases.
enum class StructureChecksums { kRequired, kIgnored };

// Reads structures of a file by their addresses. Hostile ones point at each other in circles: no
// more is read in all than twice what the file has.
class StructureReader {
 public:
  StructureReader(const ByteSource& source, std::uint64_t base, StructureWidths widths,
                  StructureChecksums checksums)
      : source_(source),
        base_(base),
        widths_(widths),
        checksums_(checksums),
        left_(2 * source.nbytes()) {}

  std::vector<std::byte> read(std::uint64_t address, std::uint64_t nbytes);
  // The same; the last four bytes must be the checksum of those before, the first `signature`.
  std::vector<std::byte> read_checked(std::uint64_t address, std::uint64_t nbytes,
                                      std::string_view signature);
  std::uint64_t base() const { return base_; }
  const StructureWidths& widths() const { return widths_; }
  std::uint64_t file_nbytes() const { return source_.nbytes(); }

  Error corrupt(std::uint64_t address, std::string_view text) const;
  Error unsupported(std::string_view text) const;

 private:
  const ByteSource& source_;
  std::uint64_t base_;
  StructureWidths widths_;
  StructureChecksums checksums_;
  std::uint64_t left_;
};

// Little-endian numbers of any width, one after another.
class StructureParser {
 public:
  StructureParser(std::span<const std::byte> bytes, const StructureReader& reader,
                  std::uint64_t address)
      : left_(bytes), reader_(reader), address_(address) {}

  std::uint64_t take(std::size_t nbytes);
  // Of the file's widths; all ones are kUndefinedAddress, or a length without limit, in each.
  std::uint64_t take_address() { return take_wide(reader_.widths().address); }
  std::uint64_t take_length() { return take_wide(reader_.widths().length); }
  void skip(std::size_t nbytes) { take_bytes(nbytes); }
  std::span<const std::byte> take_bytes(std::size_t nbytes);
  std::size_t left() const { return left_.size(); }

 private:
  std::uint64_t take_wide(std::size_t nbytes);

  std::span<const std::byte> left_;
  const StructureReader& reader_;
  std::uint64_t address_;
};

struct HeaderMessage {
  std::uint16_t type = 0;
  std::uint8_t flags = 0;
  std::vector<std::byte> body;
};

inline constexpr std::uint16_t kDataspaceMessage = 1;
inline constexpr std::uint16_t kLayoutMessage = 8;

// All messages of the header at `address`, of either version.
std::vector<HeaderMessage> read_object_header(StructureReader& reader, std::uint64_t address);

}  // namespace npyfs
