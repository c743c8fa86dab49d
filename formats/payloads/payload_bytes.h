// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one payload, read a little at a time: headers are parsed without reading what lies
// behind them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/column.h"

namespace npyfs {

// One thread.
class PayloadBytes {
 public:
  virtual ~PayloadBytes() = default;

  std::uint64_t nbytes() const { return nbytes_; }
  // How many of them are zeroes that are not stored.
  std::uint64_t hole_nbytes() const { return hole_nbytes_; }

  // `nbytes` bytes from `offset` on; valid until the next call. Throws the kCorrupt of fault()
  // where the payload ends before, and what reading throws.
  std::span<const std::byte> at(std::uint64_t offset, std::size_t nbytes);
  // The number there, little-endian.
  template <typename T>
  T number(std::uint64_t offset) {
    return load_le<T>(at(offset, sizeof(T)).data());
  }
  // As many bytes from `offset` on as there are, at most `nbytes`.
  std::span<const std::byte> at_most(std::uint64_t offset, std::size_t nbytes);

  // kCorrupt: "<file> at byte <that of the payload's `offset`>: <text>".
  virtual Error fault(std::uint64_t offset, const std::string& text) const = 0;

 protected:
  explicit PayloadBytes(std::uint64_t nbytes) : nbytes_(nbytes) {}
  void set_nbytes(std::uint64_t nbytes, std::uint64_t hole_nbytes) {
    nbytes_ = nbytes;
    hole_nbytes_ = hole_nbytes;
  }

 private:
  // The range lies within the payload.
  virtual std::span<const std::byte> do_read(std::uint64_t offset, std::size_t nbytes) = 0;

  std::uint64_t nbytes_;
  std::uint64_t hole_nbytes_ = 0;
};

// The stored bytes of one record after another, wherever their extents lie.
class RecordBytes : public PayloadBytes {
 public:
  // `window_nbytes` are read at once, where there are so many.
  RecordBytes(const ByteColumn& column, std::size_t window_nbytes)
      : PayloadBytes(0), column_(column), window_nbytes_(window_nbytes) {}

  // False where the record lacks the field. Not for a damaged record.
  bool open(std::uint64_t record);
  Error fault(std::uint64_t offset, const std::string& text) const override;

 private:
  std::span<const std::byte> do_read(std::uint64_t offset, std::size_t nbytes) override;

  const ByteColumn& column_;
  std::size_t window_nbytes_;
  std::uint64_t record_ = 0;
  std::vector<Extent> extents_;
  std::vector<std::byte> window_;
  std::uint64_t window_offset_ = 0;
};

// A payload that lies in a source in one piece, beside others that are read through one window.
class SourceBytes : public PayloadBytes {
 public:
  SourceBytes(const ByteSource& source, WindowReader& window, std::uint64_t offset,
              std::uint64_t nbytes)
      : PayloadBytes(nbytes), source_(source), window_(window), offset_(offset) {}

  Error fault(std::uint64_t offset, const std::string& text) const override {
    return corrupt_at(source_.name(), offset_ + offset, text);
  }

 private:
  std::span<const std::byte> do_read(std::uint64_t offset, std::size_t nbytes) override {
    return window_.at(offset_ + offset, nbytes);
  }

  const ByteSource& source_;
  WindowReader& window_;
  std::uint64_t offset_;
};

// A payload in memory, which must live as long.
class MemoryBytes : public PayloadBytes {
 public:
  MemoryBytes(std::span<const std::byte> bytes, std::string name)
      : PayloadBytes(bytes.size()), bytes_(bytes), name_(std::move(name)) {}

  Error fault(std::uint64_t offset, const std::string& text) const override {
    return corrupt_at(name_, offset, text);
  }

 private:
  std::span<const std::byte> do_read(std::uint64_t offset, std::size_t nbytes) override {
    return bytes_.subspan(offset, nbytes);
  }

  std::span<const std::byte> bytes_;
  std::string name_;
};

}  // namespace npyfs
