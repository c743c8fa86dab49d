// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the header of a WAV.

#include "formats/payloads/wav.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "formats/bytes/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    MemoryBytes payload(bytes, "fuzz");
    const WavHeader header = parse_wav(payload);
    const std::uint64_t stored = header.frames * header.frame_nbytes;
    if (header.data_offset > size || stored > size - header.data_offset) {
      std::abort();  // samples that are not there
    }
    std::vector<std::byte> out(header.frames * header.channels * wav_dtype(header.sample).itemsize);
    decode_wav(header.sample, header.big_endian, bytes.subspan(header.data_offset, stored), out);
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  return 0;
}
