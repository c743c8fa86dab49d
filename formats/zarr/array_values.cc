// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/array_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/box.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/error.h"
#include "formats/bytes/paths.h"

namespace npyfs {

namespace {

std::uint64_t total_nbytes(const ArrayValues::Parts& parts) {
  const auto count = element_count(parts.grid_shape);
  const auto nbytes = count ? checked_mul(*count, parts.chunk_nbytes) : std::nullopt;
  return nbytes.value_or(0);
}

std::int64_t newest_of(const ArrayValues::Parts& parts) {
  std::int64_t newest = parts.metadata->mtime_ns();
  for (const Identity& chunk : parts.noted) {
    newest = std::max(newest, chunk.mtime_ns);
  }
  return newest;
}

}  // namespace

ArrayValues::ArrayValues(Parts parts)
    : ByteSource(parts.storage->name_of(parts.prefix), total_nbytes(parts), newest_of(parts)),
      parts_(std::move(parts)) {}

std::string ArrayValues::Parts::key(std::uint64_t chunk) const {
  return join_keys(prefix, keys.key(chunk, grid_shape));
}

void ArrayValues::Parts::note_chunks(std::uint64_t& left) {
  const auto count = element_count(grid_shape);
  if (!count || *count > left) {
    return;
  }
  for (std::uint64_t chunk = 0; chunk < *count; ++chunk) {
    const std::string key = this->key(chunk);
    const auto identity = storage->identify(key);
    if (!identity) {
      noted.clear();
      return;
    }
    OpenedFiles::note(*identity, key);
    noted.push_back(*identity);
  }
  left -= *count;
}

std::optional<std::vector<std::uint64_t>> ArrayValues::chunks() const {
  const auto keys = parts_.storage->keys_below(parts_.prefix);
  if (!keys) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> chunks;
  for (const std::string& key : *keys) {
    if (const auto chunk = parts_.keys.number(key, parts_.grid_shape)) {
      chunks.push_back(*chunk);
    }
  }
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

void ArrayValues::noting_change(const std::function<void()>& access) const {
  try {
    access();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kChanged) {
      changed_.set();
    }
    throw;
  }
}

void ArrayValues::Value::read(std::uint64_t offset, std::span<std::byte> out) const {
  values_.noting_change([&] { stored_->read(offset, out); });
}

void ArrayValues::Value::require_intact(DecodeContext& context) const {
  context.require_intact(stored_->guard());
}

std::optional<ArrayValues::Value> ArrayValues::open_chunk(std::uint64_t chunk) const {
  note_read();
  const Identity* noted = chunk < parts_.noted.size() ? &parts_.noted[chunk] : nullptr;
  std::unique_ptr<StoredValue> stored;
  try {
    noting_change([&] {
      stored = parts_.storage->open_value(key(chunk), {noted, parts_.opened_at_ns});
    });
  } catch (const Error& error) {
    // A folder, a device: it stands where the chunk should.
    if (error.kind() == ErrorKind::kUnsupported) {
      throw Error(ErrorKind::kCorrupt, error.what());
    }
    throw;
  }
  if (stored == nullptr) {
    return std::nullopt;
  }
  return Value(std::move(stored), *this);
}

std::optional<Buffer> ArrayValues::read_chunk(std::uint64_t chunk,
                                              std::uint64_t most_nbytes) const {
  const auto value = open_chunk(chunk);
  if (!value) {
    return std::nullopt;
  }
  if (value->nbytes() > most_nbytes) {
    throw file_error(ErrorKind::kCorrupt, name_of(chunk),
                     fmt::format("the chunk has {} bytes, expected at most {}; it is damaged or "
                                 "the metadata is of another array",
                                 value->nbytes(), most_nbytes));
  }
  Buffer bytes(value->nbytes());
  value->read(0, bytes.bytes());
  return bytes;
}

Error ArrayValues::size_error(std::uint64_t chunk, std::uint64_t nbytes) const {
  return file_error(ErrorKind::kCorrupt, name_of(chunk),
                    fmt::format("the chunk has {} bytes, expected {}; it is damaged or the "
                                "metadata is of another array",
                                nbytes, parts_.chunk_nbytes));
}

void ArrayValues::name_damage(std::uint64_t chunk, const std::function<void()>& decode) const {
  try {
    decode();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) {
      throw;
    }
    throw file_error(ErrorKind::kCorrupt, name_of(chunk), error.what());
  }
}

void ArrayValues::check_unchanged() const {
  if (changed_.is_set()) {
    throw file_error(ErrorKind::kChanged, name(),
                     "a chunk has changed since it was mounted; unmount and mount again");
  }
  parts_.metadata->check_unchanged();
}

void ArrayValues::check_parts(std::size_t first, std::size_t count) const {
  const std::size_t all = parts_.noted.size();
  for (std::size_t i = 0; i < std::min(count, all); ++i) {
    const std::uint64_t chunk = (first + i) % all;
    const auto now = parts_.storage->identify(key(chunk));
    if (now && *now != parts_.noted[chunk]) {
      changed_.set();
      throw file_error(ErrorKind::kChanged, name_of(chunk),
                       "it has changed since it was mounted; unmount and mount again");
    }
  }
}

bool ArrayValues::knows_its_files() const {
  return parts_.storage->archive() != nullptr ||
         element_count(parts_.grid_shape) == parts_.noted.size();
}

bool ArrayValues::changed() const { return changed_.is_set() || parts_.metadata->changed(); }

void ArrayValues::do_read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::uint64_t chunk = offset / parts_.chunk_nbytes;
    const std::uint64_t within = offset % parts_.chunk_nbytes;
    const std::uint64_t n = std::min<std::uint64_t>(out.size(), parts_.chunk_nbytes - within);
    read_plain(chunk, within, out.first(n));
    offset += n;
    out = out.subspan(n);
  }
}

void ArrayValues::read_plain(std::uint64_t chunk, std::uint64_t within,
                             std::span<std::byte> out) const {
  const auto value = open_chunk(chunk);
  if (!value) {
    // `within` need not be at an element's beginning.
    std::vector<std::byte> pattern(parts_.fill);
    std::rotate(pattern.begin(),
                pattern.begin() + static_cast<std::ptrdiff_t>(within % pattern.size()),
                pattern.end());
    fill_elements(out, pattern);
    return;
  }
  if (value->nbytes() != parts_.chunk_nbytes) {
    throw size_error(chunk, value->nbytes());
  }
  value->read(within, out);
}

}  // namespace npyfs
