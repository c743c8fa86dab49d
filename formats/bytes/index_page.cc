// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/index_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/bytes/byte_source.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kAlign = 8;

std::uint64_t padding_of(std::uint64_t nbytes) { return (kAlign - nbytes % kAlign) % kAlign; }

}  // namespace

// Its length before it, so that no two lists of things make one text.
void PageKey::add(std::string_view thing) { things_ += fmt::format("{}:{}", thing.size(), thing); }

bool PageKey::add_source(const ByteSource& source) {
  const Identity identity = source.identity();
  // Messages name the source.
  sources_ += fmt::format("{}:{}{} ", source.name().size(), source.name(), identity.text());
  if (++source_count_ <= kMostPortable) {
    portable_sources_.push_back({source.path(), identity.nbytes, identity.mtime_ns});
  } else {
    portable_sources_.clear();
  }
  nbytes_ += identity.nbytes;
  mtime_ns_ = std::max(mtime_ns_, identity.mtime_ns);
  return identity.exists();
}

void PageWriter::put(std::span<const std::byte> bytes) {
  static constexpr std::array<std::byte, kAlign> kZeros{};
  sink_(bytes);
  sink_(std::span(kZeros).first(padding_of(bytes.size())));
}

void PageWriter::number(std::uint64_t value) { put(std::as_bytes(std::span(&value, 1))); }

void PageWriter::optional(std::optional<std::uint64_t> value) {
  flag(value.has_value());
  number(value.value_or(0));
}

void PageWriter::text(std::string_view text) { array(std::span<const char>(text)); }

void PageWriter::begin_array(std::uint64_t size, std::uint64_t itemsize) {
  number(size);
  number(itemsize);
}

void PageReader::require(bool holds) {
  if (!holds) {
    throw Error(ErrorKind::kCorrupt, "a page of the index contradicts itself");
  }
}

std::span<const std::byte> PageReader::take(std::uint64_t nbytes) {
  require(nbytes <= left_.size() && padding_of(nbytes) <= left_.size() - nbytes);
  const auto bytes = left_.first(nbytes);
  left_ = left_.subspan(nbytes + padding_of(nbytes));
  return bytes;
}

std::uint64_t PageReader::number() { return load_le<std::uint64_t>(take(kAlign).data()); }

std::uint64_t PageReader::number(std::uint64_t most) {
  const std::uint64_t value = number();
  require(value <= most);
  return value;
}

std::optional<std::uint64_t> PageReader::optional() {
  const bool is_there = flag();
  const std::uint64_t value = number();
  return is_there ? std::optional(value) : std::nullopt;
}

std::string PageReader::text() {
  const auto bytes = array_bytes(1);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> PageReader::array_bytes(std::uint64_t itemsize) {
  const std::uint64_t size = number();
  require(number() == itemsize && size <= left_.size() / itemsize);
  return take(size * itemsize);
}

}  // namespace npyfs
