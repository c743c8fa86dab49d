// SPDX-License-Identifier: Apache-2.0
//
// Checksums that a source carries for its records. Formats say where they lie; whether they are
// verified, and when, is up to whoever reads.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"
#include "formats/bytes/serial.h"

namespace npyfs {

// Bytes in a source. The source belongs to whoever handed the extent out.
struct Extent {
  const ByteSource* source = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
};

// A checksum of a record's whole stored payload.
struct Checksum {
  enum class Kind {
    kCrc32,         // zlib's, little-endian
    kCrc32cMasked,  // TFRecord's, little-endian
  };
  Kind kind = Kind::kCrc32;
  Extent payload;
  Extent stored;  // 4 bytes
};

// The checksums of numbered records. Any thread. A record keeps its number and its checksum, once
// anybody has asked about it; more may follow while a format is still reading its source.
class Checksums {
 public:
  virtual ~Checksums() = default;

  // Identifies these checksums to whoever remembers which records are intact.
  std::uint64_t serial() const { return serial_.value(); }

  // Nothing where the record has no checksum. Not to be asked for a damaged record.
  virtual std::optional<Checksum> checksum(std::uint64_t record) const = 0;
  // "record 7", "record 7 (key utt-3)": for messages.
  virtual std::string name_of(std::uint64_t record) const = 0;

 private:
  Serial serial_;
};

// Records that must match their checksums before their bytes are used.
struct Guard {
  const Checksums* checksums = nullptr;  // null: nothing to verify
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// The checksum of `payload`, in the form in which it is stored.
std::uint32_t checksum_of(Checksum::Kind kind, std::span<const std::byte> payload);

// The same of the payload itself, read through a fixed buffer. A payload may be larger than anybody
// has time for: `proceed` is called before each part and may throw.
std::uint32_t read_checksum_of(const Checksum& checksum,
                               const std::function<void()>& proceed = nullptr);

// "record 7 (key utt-3)": for messages.
std::string record_name(std::uint64_t record, std::string_view key);

}  // namespace npyfs
