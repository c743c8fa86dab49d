// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/checksums.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "formats/bytes/crc.h"

namespace npyfs {

namespace {

// A checksum over bytes in pieces: steps from 0, then the value as it is stored.
std::uint32_t step(Checksum::Kind kind, std::span<const std::byte> bytes, std::uint32_t before) {
  return kind == Checksum::Kind::kCrc32 ? crc32(bytes, before) : crc32c(bytes, before);
}

std::uint32_t to_stored(Checksum::Kind kind, std::uint32_t crc) {
  return kind == Checksum::Kind::kCrc32 ? crc : mask_crc32c(crc);
}

}  // namespace

std::uint32_t checksum_of(Checksum::Kind kind, std::span<const std::byte> payload) {
  return to_stored(kind, step(kind, payload, 0));
}

std::uint32_t read_checksum_of(const Checksum& checksum, const std::function<void()>& proceed) {
  constexpr std::uint64_t kBufferNbytes = 1 << 20;
  std::vector<std::byte> buffer(std::min(checksum.payload.nbytes, kBufferNbytes));
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < checksum.payload.nbytes;) {
    if (proceed) {
      proceed();
    }
    const std::uint64_t n = std::min(kBufferNbytes, checksum.payload.nbytes - done);
    const std::span<std::byte> part(buffer.data(), n);
    checksum.payload.source->read_at(checksum.payload.offset + done, part);
    crc = step(checksum.kind, part, crc);
    done += n;
  }
  return to_stored(checksum.kind, crc);
}

std::string record_name(std::uint64_t record, std::string_view key) {
  return fmt::format("record {} (key {})", record, printable(key));
}

}  // namespace npyfs
