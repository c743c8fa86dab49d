// SPDX-License-Identifier: Apache-2.0
//
// Four bytes, little-endian, before or behind the bytes they are a checksum of.

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <functional>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/codecs/lookup3.h"
#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::size_t kSumNbytes = 4;

using Payload = std::span<const std::byte>;
// Whether `stored` is the checksum of the payload.
using Matches = std::function<bool(Payload payload, std::uint32_t stored)>;

class Checksum32 : public Codec {
 public:
  Checksum32(const std::string& name, ChecksumPlace place, Matches matches)
      : Codec(name), place_(place), matches_(std::move(matches)) {}

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    if (in.size() < kSumNbytes) {
      throw damaged(fmt::format("{} bytes are there, expected {} or more", in.size(), kSumNbytes));
    }
    const bool first = place_ == ChecksumPlace::kStart;
    const Payload payload = in.subspan(first ? kSumNbytes : 0, in.size() - kSumNbytes);
    if (payload.size() > out.size()) {
      return std::nullopt;
    }
    const auto stored = load_le<std::uint32_t>(first ? in.data() : payload.data() + payload.size());
    if (!matches_(payload, stored)) {
      throw damaged(fmt::format("the stored checksum {:08x} is not that of the bytes", stored));
    }
    std::copy(payload.begin(), payload.end(), out.begin());
    return payload.size();
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return decoded_nbytes + kSumNbytes;
  }

 private:
  ChecksumPlace place_;
  Matches matches_;
};

// Fletcher's two sums of 16-bit words. HDF5 (src/H5checksum.c) takes the words big-endian and
// leaves ffff as it is.
std::uint32_t hdf5_fletcher32(Payload bytes) {
  std::uint32_t sum1 = 0;
  std::uint32_t sum2 = 0;
  const auto add = [&](std::uint32_t word) {
    sum1 += word;
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 += sum1;
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
  };
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    add(std::to_integer<std::uint32_t>(bytes[i]) << 8 |
        std::to_integer<std::uint32_t>(bytes[i + 1]));
  }
  if (bytes.size() % 2 != 0) {
    add(std::to_integer<std::uint32_t>(bytes.back()) << 8);
  }
  return sum2 << 16 | sum1;
}

// As numcodecs before 0.12 wrote it: words little-endian, ffff counts as 0.
std::uint32_t old_fletcher32(Payload bytes) {
  std::uint32_t sum1 = 0;
  std::uint32_t sum2 = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::uint32_t word = std::to_integer<std::uint32_t>(bytes[i]);
    if (i + 1 < bytes.size()) {
      word |= std::to_integer<std::uint32_t>(bytes[i + 1]) << 8;
    }
    sum1 = (sum1 + word) % 0xffff;
    sum2 = (sum2 + sum1) % 0xffff;
  }
  return sum2 << 16 | sum1;
}

}  // namespace

CodecPtr make_crc32(ChecksumPlace place) {
  return std::make_unique<Checksum32>(
      "crc32", place, [](Payload bytes, std::uint32_t stored) { return crc32(bytes) == stored; });
}

CodecPtr make_crc32c(ChecksumPlace place) {
  return std::make_unique<Checksum32>(
      "crc32c", place, [](Payload bytes, std::uint32_t stored) { return crc32c(bytes) == stored; });
}

CodecPtr make_adler32(ChecksumPlace place) {
  return std::make_unique<Checksum32>("adler32", place, [](Payload bytes, std::uint32_t stored) {
    return libdeflate_adler32(1, bytes.data(), bytes.size()) == stored;
  });
}

CodecPtr make_fletcher32() {
  return std::make_unique<Checksum32>(
      "fletcher32", ChecksumPlace::kEnd, [](Payload bytes, std::uint32_t stored) {
        return hdf5_fletcher32(bytes) == stored || old_fletcher32(bytes) == stored;
      });
}

CodecPtr make_jenkins_lookup3(std::uint32_t initial) {
  return std::make_unique<Checksum32>(
      "jenkins_lookup3", ChecksumPlace::kEnd,
      [initial](Payload bytes, std::uint32_t stored) { return lookup3(bytes, initial) == stored; });
}

}  // namespace npyfs
