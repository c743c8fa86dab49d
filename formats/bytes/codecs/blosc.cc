// SPDX-License-Identifier: Apache-2.0
//
// c-blosc: README_CHUNK_FORMAT.rst.
//
//   0  1  2      3         4       8          12     16
//   |v |vl|flags |typesize |nbytes |blocksize |cbytes| blocks ...

#include <blosc.h>
#include <fmt/format.h>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kHeaderNbytes = BLOSC_MIN_HEADER_LENGTH;

class Blosc : public Codec {
 public:
  Blosc() : Codec("blosc") {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    check_header(in);
    const std::uint64_t nbytes = *claimed_nbytes(in);
    if (nbytes > out.size()) {
      return std::nullopt;
    }
    // One thread; the call without _ctx would take a global lock.
    const int made = blosc_decompress_ctx(in.data(), out.data(), nbytes, 1);
    if (made < 0 || static_cast<std::uint64_t>(made) != nbytes) {
      throw damaged("the chunk is damaged, or its compressor is not built in");
    }
    return nbytes;
  }

  std::optional<std::uint64_t> claimed_nbytes(std::span<const std::byte> in) const override {
    if (in.size() < kHeaderNbytes) {
      return std::nullopt;
    }
    return load_le<std::uint32_t>(in.data() + 4);
  }

 private:
  // The library believes the sizes that the header claims.
  void check_header(std::span<const std::byte> in) const {
    if (in.size() < kHeaderNbytes) {
      throw damaged(
          fmt::format("{} bytes are there, expected a header of {}", in.size(), kHeaderNbytes));
    }
    const auto version = std::to_integer<unsigned>(in[0]);
    if (version != BLOSC_VERSION_FORMAT) {
      throw damaged(
          fmt::format("format version is {}, expected {}", version, BLOSC_VERSION_FORMAT));
    }
    const auto nbytes = load_le<std::uint32_t>(in.data() + 4);
    const auto block_nbytes = load_le<std::uint32_t>(in.data() + 8);
    const auto stored_nbytes = load_le<std::uint32_t>(in.data() + 12);
    if (stored_nbytes != in.size()) {
      throw damaged(fmt::format("stored size is {}, expected the {} bytes that are there",
                                stored_nbytes, in.size()));
    }
    if (nbytes > BLOSC_MAX_BUFFERSIZE) {
      throw damaged(
          fmt::format("decoded size is {}, expected at most {}", nbytes, BLOSC_MAX_BUFFERSIZE));
    }
    if (in[3] == std::byte{0} || (nbytes > 0 && (block_nbytes == 0 || block_nbytes > nbytes))) {
      throw damaged(
          fmt::format("type size is {} and block size {}, expected 1 or more and at most "
                      "the decoded size {}",
                      std::to_integer<unsigned>(in[3]), block_nbytes, nbytes));
    }
  }
};

}  // namespace

CodecPtr make_blosc() { return std::make_unique<Blosc>(); }

}  // namespace npyfs
