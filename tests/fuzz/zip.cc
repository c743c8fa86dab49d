// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a zip archive: its directory, and its small members decoded.

#include "formats/bytes/zip.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "formats/bytes/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  const auto bytes = std::as_bytes(std::span(data, size));
  const MemorySource archive("fuzz", {bytes.begin(), bytes.end()});
  try {
    const ZipDirectory directory(archive);
    for (std::uint64_t i = 0; i < directory.size(); ++i) {
      const ZipMember member = directory[i];
      if (directory.find(member.name).value_or(0) < i) {
        std::abort();  // the last of equal names is the one that counts
      }
      try {
        require_plausible(archive, member);
        const std::uint64_t offset = zip_data_offset(archive, member);
        if (offset > size || member.stored_nbytes > size - offset) {
          std::abort();  // bytes that are not there
        }
        if (member.nbytes <= (std::uint64_t{1} << 20)) {
          std::vector<std::byte> out(member.nbytes);
          read_zip_member(archive, member, out);
        }
      } catch (const Error&) {  // one member's
      }
    }
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  return 0;
}
