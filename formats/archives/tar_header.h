// SPDX-License-Identifier: Apache-2.0
//
// One 512-byte header block of a tar archive (POSIX ustar, old GNU, v7). See ../tar/FORMAT.md.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace npyfs {

constexpr std::size_t kTarBlock = 512;

// A view of a block; valid as long as the block's bytes.
class TarHeader {
 public:
  explicit TarHeader(std::span<const std::byte, kTarBlock> block) : block_(block) {}

  bool all_zero() const;
  // Whether the sum that the block carries is that of its bytes, taken as unsigned or, as old
  // writers did, as signed.
  bool checksum_holds() const;

  enum class Dialect { kV7, kUstar, kGnu };
  Dialect dialect() const;
  char type() const { return static_cast<char>(block_[156]); }
  std::string_view name() const { return text(0, 100); }
  std::string_view prefix() const;  // empty but in ustar
  std::string_view link_target() const { return text(157, 100); }
  // Nothing where the field is neither octal nor base-256. Negative as a file may have it.
  std::optional<std::int64_t> size() const { return number(124, 12); }

  // A number field of the block: octal digits, or base-256.
  std::optional<std::int64_t> number(std::size_t at, std::size_t width) const;
  // A text field: up to its first NUL.
  std::string_view text(std::size_t at, std::size_t width) const;
  std::byte byte(std::size_t at) const { return block_[at]; }

 private:
  std::span<const std::byte, kTarBlock> block_;
};

// Whether `head`, the first bytes of a file, begins with a header block. Zero blocks do not count.
bool is_tar_header(std::span<const std::byte> head);

}  // namespace npyfs
