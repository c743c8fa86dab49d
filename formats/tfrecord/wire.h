// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's wire format, read by hopping: tags and lengths are looked at, long values are stepped
// over unread. https://protobuf.dev/programming-guides/encoding/

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/error.h"

namespace npyfs {

// The bytes are no message. Apart from Error so that a source that cannot be read, or is itself
// damaged (a compressed one), is not taken for a malformed record.
class WireFault : public Error {
 public:
  explicit WireFault(const Error& error) : Error(error) {}
};

// Bytes of a source by their offset in it: through a window, or a piece already in memory.
class WireBytes {
 public:
  WireBytes(const ByteSource& source, WindowReader& window) : source_(source), window_(&window) {}
  // `memory` holds what lies at `memory_offset` of the source.
  WireBytes(const ByteSource& source, std::span<const std::byte> memory,
            std::uint64_t memory_offset)
      : source_(source), memory_(memory), memory_offset_(memory_offset) {}

  const std::string& name() const { return source_.name(); }
  // Valid until the next call. The range must lie in the source, or in the piece in memory.
  std::span<const std::byte> at(std::uint64_t offset, std::size_t nbytes) const {
    return window_ != nullptr ? window_->at(offset, nbytes)
                              : memory_.subspan(offset - memory_offset_, nbytes);
  }

 private:
  const ByteSource& source_;
  WindowReader* window_ = nullptr;
  std::span<const std::byte> memory_;
  std::uint64_t memory_offset_ = 0;
};

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,  // a varint length, then as many bytes
  kGroupBegin = 3,
  kGroupEnd = 4,
  kFixed32 = 5,
};

struct Tag {
  std::uint32_t field = 0;
  WireType type = WireType::kVarint;
  bool is(std::uint32_t wanted_field, WireType wanted_type) const {
    return field == wanted_field && type == wanted_type;
  }
};

// A cursor over one message. Every member throws WireFault, naming file and offset, where the
// message ends too soon or breaks the encoding's rules.
class WireReader {
 public:
  // `range` in the source; it must lie within it.
  WireReader(const WireBytes& bytes, ByteRange range) : bytes_(bytes), range_(range) {}

  bool done() const { return range_.empty(); }
  Tag tag();
  // At most ten bytes; bits beyond the 64th are dropped, as protobuf drops them.
  std::uint64_t varint();
  // The place of a length-delimited value's content; stepped over.
  ByteRange length_delimited();
  // The place of a value of `nbytes` bytes; stepped over.
  ByteRange fixed(std::uint64_t nbytes);
  // Steps over the value that follows `tag`, a whole group included.
  void skip(Tag tag) { skip_value(tag, 0); }

 private:
  void skip_value(Tag tag, int depth);
  void skip_group(std::uint32_t field, int depth);
  [[noreturn]] void fail(std::uint64_t offset, std::string_view text) const;

  const WireBytes& bytes_;
  ByteRange range_;  // what is left
};

// How many varints `range` holds, back to back. Throws WireFault where it is not made of varints.
std::uint64_t count_varints(const WireBytes& bytes, ByteRange range);

}  // namespace npyfs
