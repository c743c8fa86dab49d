// SPDX-License-Identifier: Apache-2.0
//
// A place in a source that moves on while objects are parsed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/byte_source.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"

namespace npyfs {

// One thread. Reads little more than is asked for, so that hopping from header to header does not
// read the data between them.
class Cursor {
 public:
  explicit Cursor(const ByteSource& source) : source_(source), window_(source, kNearNbytes) {}

  const ByteSource& source() const { return source_; }
  WindowReader& window() {
    at_hand_ = {};
    return window_;
  }
  std::uint64_t offset() const { return offset_; }
  void seek(std::uint64_t offset) {
    const std::uint64_t moved = offset - offset_;
    at_hand_ = offset >= offset_ && moved <= at_hand_.size() ? at_hand_.subspan(moved)
                                                             : std::span<const std::byte>();
    offset_ = offset;
  }
  std::uint64_t left() const { return source_.nbytes() - std::min(offset_, source_.nbytes()); }

  // The next byte, or -1 at the end.
  int peek() {
    if (at_hand_.empty()) {
      if (left() == 0) {
        return -1;
      }
      at_hand_ = window_.at_least(offset_, 1);
    }
    return std::to_integer<int>(at_hand_.front());
  }
  void skip() { seek(offset_ + 1); }
  int take() {
    const int c = peek();
    if (c >= 0) {
      skip();
    }
    return c;
  }

  // The next bytes, at most `nbytes`; valid until the next call of anything.
  std::span<const std::byte> look(std::size_t nbytes) {
    nbytes = static_cast<std::size_t>(std::min<std::uint64_t>(nbytes, left()));
    if (at_hand_.size() < nbytes) {
      at_hand_ = window_.at_least(offset_, nbytes);
    }
    return at_hand_.first(nbytes);
  }

  // Reads a number behind its size byte `size`. Throws kCorrupt.
  template <typename T>
  T sized(char size, const char* what) {
    expect(size, what);
    return plain<T>(what);
  }
  template <typename T>
  T plain(const char* what) {
    const auto bytes = look(sizeof(T));
    if (bytes.size() < sizeof(T)) {
      throw cut(what);
    }
    const T value = load_le<T>(bytes.data());
    seek(offset_ + sizeof(T));
    return value;
  }
  void expect(char byte, const char* what);
  // Moves over `nbytes` bytes of data, which must be there.
  void hop(std::uint64_t nbytes, const char* what);

  // "<what> is <found>, expected <rule>", at `offset`.
  Error fault(std::uint64_t offset, const std::string& text) const;
  Error cut(const char* what) const;

 private:
  static constexpr std::size_t kNearNbytes = 512;

  const ByteSource& source_;
  WindowReader window_;
  std::uint64_t offset_ = 0;
  std::span<const std::byte> at_hand_;  // from offset_ on
};

}  // namespace npyfs
