// SPDX-License-Identifier: Apache-2.0
//
// One step from stored bytes to an array's bytes: a decompressor, a filter, a checksum. What stores
// of chunks (zarr, HDF5) are configured with.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/bytes/error.h"

namespace npyfs {

// Immutable; any thread. Never reads behind `in` or writes behind `out`, whatever `in` holds.
class Codec {
 public:
  virtual ~Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  // As its configuration calls it: "zlib".
  const std::string& name() const { return name_; }

  // Decodes `in` to the beginning of `out`: how many bytes that made, or nothing where `out` is too
  // small for them (what it holds then is unspecified). The two do not overlap. Throws kCorrupt
  // where `in` is damaged; the text names the codec but no file.
  virtual std::optional<std::size_t> decode(std::span<const std::byte> in,
                                            std::span<std::byte> out) const = 0;

  // How many bytes are made of `decoded_nbytes` by encoding; nothing where that depends on them.
  virtual std::optional<std::uint64_t> encoded_nbytes(std::uint64_t /*decoded_nbytes*/) const {
    return std::nullopt;
  }

  // No more bytes than this are made of `decoded_nbytes` where encoded_nbytes() is nothing. What
  // does not compress becomes a little larger; no compressor adds nearly as much as the default.
  virtual std::uint64_t most_encoded_nbytes(std::uint64_t decoded_nbytes) const {
    constexpr std::uint64_t kSlackNbytes = std::uint64_t{64} << 10;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    return decoded_nbytes < kMost ? decoded_nbytes + decoded_nbytes / 2 + kSlackNbytes : kMost;
  }

  // Whether what is encoded may be far larger than what is decoded: cells hold the lengths of
  // texts, say, and not the texts. most_encoded_nbytes() alone bounds it then.
  virtual bool holds_more_than_cells() const { return false; }

  // How many bytes `in` claims to decode to; nothing where it makes no claim.
  virtual std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> /*in*/) const {
    return std::nullopt;
  }

 protected:
  explicit Codec(std::string name) : name_(std::move(name)) {}

  // "<codec>: <text>", kCorrupt.
  Error damaged(std::string_view text) const;

 private:
  std::string name_;
};

using CodecPtr = std::unique_ptr<const Codec>;

}  // namespace npyfs
