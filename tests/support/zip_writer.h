// SPDX-License-Identifier: Apache-2.0
//
// Writes zip archives for tests: such as writers make, and such as nobody should.

#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>

#include "formats/bytes/crc.h"

namespace npyfs::testing {

template <typename T>
std::string le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string u16(std::uint64_t value) { return le(static_cast<std::uint16_t>(value)); }
inline std::string u32(std::uint64_t value) { return le(static_cast<std::uint32_t>(value)); }

inline std::string deflate_raw(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Writes an archive member by member, each field where APPNOTE.TXT has it.
class ZipWriter {
 public:
  struct Options {
    std::uint16_t method = 0;
    std::uint16_t flags = 0;
    bool zip64 = false;  // sizes and offset in the extra field
    std::string local_extra;
    std::string claimed_nbytes;  // 4 bytes in place of the size, if any
  };

  void add(const std::string& name, const std::string& bytes) { add(name, bytes, Options()); }
  void add(const std::string& name, const std::string& bytes, const Options& options) {
    const std::string data = options.method == 8 ? deflate_raw(bytes) : bytes;
    const std::uint32_t crc = crc32(std::as_bytes(std::span(bytes)));
    const std::uint64_t offset = archive.size();
    archive += "PK\3\4" + u16(20) + u16(options.flags) + u16(options.method) + u32(0) + u32(crc) +
               u32(data.size()) + u32(bytes.size()) + u16(name.size()) +
               u16(options.local_extra.size()) + name + options.local_extra + data;
    const std::string extra = options.zip64
                                  ? u16(1) + u16(24) + le<std::uint64_t>(bytes.size()) +
                                        le<std::uint64_t>(data.size()) + le<std::uint64_t>(offset)
                                  : "";
    const auto field = [&](std::uint64_t value) { return u32(options.zip64 ? 0xffffffff : value); };
    const std::string nbytes =
        options.claimed_nbytes.empty() ? field(bytes.size()) : options.claimed_nbytes;
    directory += "PK\1\2" + u16(20) + u16(20) + u16(options.flags) + u16(options.method) + u32(0) +
                 u32(crc) + field(data.size()) + nbytes + u16(name.size()) + u16(extra.size()) +
                 u16(0) + u16(0) + u16(0) + u32(0) + field(offset) + name + extra;
    ++count;
  }

  std::string finish(const std::string& comment = "") const {
    return archive + directory + "PK\5\6" + u16(0) + u16(0) + u16(count) + u16(count) +
           u32(directory.size()) + u32(archive.size()) + u16(comment.size()) + comment;
  }

  std::string finish64() const {
    const std::string end64 = "PK\6\6" + le<std::uint64_t>(44) + u16(45) + u16(45) + u32(0) +
                              u32(0) + le<std::uint64_t>(count) + le<std::uint64_t>(count) +
                              le<std::uint64_t>(directory.size()) +
                              le<std::uint64_t>(archive.size());
    return archive + directory + end64 + "PK\6\7" + u32(0) +
           le<std::uint64_t>(archive.size() + directory.size()) + u32(1) + "PK\5\6" + u16(0) +
           u16(0) + u16(0xffff) + u16(0xffff) + u32(0xffffffff) + u32(0xffffffff) + u16(0);
  }

  std::string archive;
  std::string directory;
  std::uint64_t count = 0;
};

}  // namespace npyfs::testing
