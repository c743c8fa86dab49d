// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what each codec decodes.

#include "formats/bytes/codecs/codecs.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/bytes/codecs/codec_chain.h"
#include "formats/bytes/error.h"

namespace {

using namespace npyfs;  // NOLINT

std::vector<CodecPtr> all_codecs() {
  const DType number = DType::simple("<f4");
  std::vector<CodecPtr> codecs;
  codecs.push_back(make_blosc());
  codecs.push_back(make_zstd());
  codecs.push_back(make_zlib());
  codecs.push_back(make_gzip());
  codecs.push_back(make_bz2());
  codecs.push_back(make_lz4());
  codecs.push_back(make_lzma(LzmaFormat::kAuto, {}));
  codecs.push_back(make_delta(number, DType::simple(">i2")));
  codecs.push_back(make_fixed_scale_offset(number, DType::simple("|u1"), 0, 1e300));
  codecs.push_back(make_cast("astype", DType::simple("|i1"), number));
  codecs.push_back(make_categorize(DType::simple("<U3"), DType::simple("<u8"), {"a", "bcdef"}));
  codecs.push_back(make_packbits());
  codecs.push_back(make_shuffle(3));
  codecs.push_back(make_byte_swap(8));
  codecs.push_back(make_base64());
  codecs.push_back(make_lzf());
  codecs.push_back(make_hdf5_lz4());
  codecs.push_back(make_bitshuffle(4, 0, BitshuffleInner::kNone));
  codecs.push_back(make_bitshuffle(4, 0, BitshuffleInner::kLz4));
  codecs.push_back(make_bitshuffle(3, 16, BitshuffleInner::kZstd));
  codecs.push_back(make_szip({141, 8, 8, 400}));
  codecs.push_back(make_szip({169, 16, 64, 90}));
  codecs.push_back(make_crc32c(ChecksumPlace::kEnd));
  codecs.push_back(make_fletcher32());
  codecs.push_back(make_jenkins_lookup3(0));
  return codecs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<CodecPtr> kCodecs = all_codecs();
  const auto in = std::as_bytes(std::span(data, size));
  for (const CodecPtr& codec : kCodecs) {
    for (const std::size_t room : {std::size_t{0}, std::size_t{100}, std::size_t{20000}}) {
      std::vector<std::byte> out(room);
      try {
        const auto made = codec->decode(in, out);
        if (made && *made > room) {
          std::abort();
        }
      } catch (const Error&) {  // what is refused is refused by this alone
      }
    }
  }
  return 0;
}
