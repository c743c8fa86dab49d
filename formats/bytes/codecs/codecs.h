// SPDX-License-Identifier: Apache-2.0
//
// Every codec there is, each made in a file of its own. What a codec's bytes look like is told
// there; who names codecs by their configuration asks make_codec (codec_table.h).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/codecs/codec.h"
#include "formats/bytes/dtype.h"

namespace npyfs {

// ---- compressors

// Chunks of c-blosc 1, whose header says how they were compressed.
CodecPtr make_blosc();
// Zstandard frames.
CodecPtr make_zstd();
// A zlib stream (RFC 1950), or gzip members one after another (RFC 1952).
CodecPtr make_zlib();
CodecPtr make_gzip();
// bzip2 streams one after another.
CodecPtr make_bz2();
// numcodecs' lz4: the decoded size in four bytes, then one LZ4 block.
CodecPtr make_lz4();

// lzma in the container it was configured with. Python: Lib/lzma.py, whose numbers these are.
enum class LzmaFormat { kAuto = 0, kXz = 1, kAlone = 2, kRaw = 3 };
struct LzmaFilter {
  std::uint64_t id = 0;
  std::uint32_t preset = 6;  // of LZMA1 and LZMA2; what is given below overrules it
  std::optional<std::uint32_t> dict_nbytes, lc, lp, pb;
  std::uint32_t dist = 1;          // of delta
  std::uint32_t start_offset = 0;  // of branch filters
};
// `filters` only for kRaw, in encoding order. Throws kUnsupported for filters that liblzma does not
// take.
CodecPtr make_lzma(LzmaFormat format, const std::vector<LzmaFilter>& filters);

// ---- HDF5's own. Their options are the filter's values in the file

// h5py's.
CodecPtr make_lzf();
// Filter 32004.
CodecPtr make_hdf5_lz4();
// Filter 32008. `block_elements`: 0 for the usual; where there is an inner compressor, the chunk
// says.
enum class BitshuffleInner { kNone = 0, kLz4 = 2, kZstd = 3 };
CodecPtr make_bitshuffle(std::uint64_t element_nbytes, std::uint64_t block_elements,
                         BitshuffleInner inner);
struct SzipOptions {
  std::uint32_t mask = 0;
  std::uint32_t pixels_per_block = 0;
  std::uint32_t bits_per_pixel = 0;
  std::uint32_t pixels_per_scanline = 0;
};
// Throws kUnsupported for options that libaec does not take. A stream that is cut near its end may
// go unnoticed: szip has no checksum, and libaec fills up the last scan line.
CodecPtr make_szip(const SzipOptions& options);

// ---- filters. Element types are booleans, integers and floats of at most 8 bytes in either byte
// order; the makers throw kUnsupported for others.

// Differences of neighbours, stored as `stored`; the sum is taken in `dtype`.
CodecPtr make_delta(const DType& dtype, const DType& stored);
// stored / scale + offset as `dtype`.
CodecPtr make_fixed_scale_offset(const DType& dtype, const DType& stored, double scale,
                                 double offset);
// Numbers stored as another type; `name` is that of the codec ("astype", "quantize").
CodecPtr make_cast(const std::string& name, const DType& dtype, const DType& stored);
// Labels (UTF-8) stored as numbers from 1 on, 0 for none; decodes to <U or >U of `dtype`.
CodecPtr make_categorize(const DType& dtype, const DType& stored,
                         const std::vector<std::string>& labels);
// Booleans as bits.
CodecPtr make_packbits();
// Bytes of one significance together.
CodecPtr make_shuffle(std::uint64_t element_nbytes);
// Reverses the bytes of each number of `number_nbytes`.
CodecPtr make_byte_swap(std::uint32_t number_nbytes);
// Nothing: what encoding changed (bitround) cannot be undone.
CodecPtr make_identity(const std::string& name);
// RFC 4648 text.
CodecPtr make_base64();

// ---- checksums: four bytes before or behind what they are of

enum class ChecksumPlace { kStart, kEnd };
CodecPtr make_crc32(ChecksumPlace place);
CodecPtr make_adler32(ChecksumPlace place);
CodecPtr make_crc32c(ChecksumPlace place);
CodecPtr make_fletcher32();
CodecPtr make_jenkins_lookup3(std::uint32_t initial);

}  // namespace npyfs
