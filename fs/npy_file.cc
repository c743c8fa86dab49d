// SPDX-License-Identifier: Apache-2.0

#include "fs/npy_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "formats/bytes/dtype.h"
#include "formats/bytes/npy_header.h"

namespace npyfs {

namespace {

// numpy's own: a .npy file that is shown as it is need not be aligned otherwise.
constexpr std::uint64_t kUsualAlign = 64;

// Names of sources, as many as a reader wants to see.
std::string source_text(const std::vector<SourcePtr>& sources) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, sources.size()); ++i) {
    text += (i == 0 ? "" : ";") + sources[i]->name();
  }
  if (sources.size() > kMost) {
    text += fmt::format(";... ({} in all)", sources.size());
  }
  return text;
}

}  // namespace

NpyFile::NpyFile(NamedArray array, std::uint64_t header_align)
    : array_(std::move(array)),
      as_it_is_(array_.whole != nullptr && header_align == kUsualAlign),
      is_source_(as_it_is_ && array_.whole->is_file()),
      knows_its_files_(
          std::all_of(array_.sources.begin(), array_.sources.end(),
                      [](const SourcePtr& source) { return source->knows_its_files(); })) {
  const Array& data = *array_.array;
  if (!as_it_is_) {
    header_ = print_npy_header(data.dtype(), data.shape(), data.fortran_order(), header_align);
  }
  header_nbytes_ = as_it_is_ ? array_.whole->header.nbytes : header_.size();
}

void NpyFile::plan_read(ByteRange range, Plan& plan) const {
  range.end = std::min(range.end, nbytes());
  const std::uint64_t header_end = std::min(range.end, header_nbytes_);
  if (range.begin < header_end) {
    const std::uint64_t n = header_end - range.begin;
    if (as_it_is_) {
      const StoredNpy& whole = *array_.whole;
      plan.add_extent(*whole.source, whole.offset + range.begin, n, whole.guard());
    } else {
      plan.add_memory(std::as_bytes(std::span(header_)).data() + range.begin, n);
    }
    range.begin = header_end;
  }
  if (!range.empty()) {
    array_.array->plan({range.begin - header_nbytes_, range.end - header_nbytes_}, plan);
  }
}

void NpyFile::require_unchanged() const {
  // Counted before they are asked: what changes meanwhile is asked for again.
  const std::uint64_t count = count_changed_sources();
  if (count != asked_at_change_.load(std::memory_order_relaxed)) {
    npyfs::require_unchanged(array_.sources);
    asked_at_change_.store(count, std::memory_order_relaxed);
  }
}

void NpyFile::check_unchanged(std::int64_t second) const {
  require_unchanged();
  if (is_source_) {
    array_.whole->source->check_unchanged();
  }
  if (checked_second_.exchange(second, std::memory_order_relaxed) == second) {
    return;
  }
  const std::vector<SourcePtr>& sources = array_.sources;
  const std::size_t n = std::min(kMostLooks, sources.size());
  const std::size_t first = next_look_.fetch_add(n, std::memory_order_relaxed);
  for (std::size_t i = first; i < first + n; ++i) {
    sources[i % sources.size()]->check_unchanged();
  }
}

void NpyFile::check_parts(std::int64_t second) const {
  if (parts_checked_second_.exchange(second, std::memory_order_relaxed) == second) {
    return;
  }
  const std::size_t asked = std::min(kMostLooks, array_.sources.size());
  const std::size_t first = next_part_.fetch_add(kMostLooks, std::memory_order_relaxed);
  for (std::size_t i = 0; i < asked; ++i) {
    array_.sources[(first + i) % array_.sources.size()]->check_parts(first, kMostLooks / asked);
  }
}

std::optional<int> NpyFile::open_backing() const {
  return is_source_ ? std::optional(array_.whole->source->open_again()) : std::nullopt;
}

Xattrs NpyFile::xattrs() const {
  return {{"user.npyfs.format", array_.format},
          {"user.npyfs.dtype", array_.array->dtype().text()},
          {"user.npyfs.shape", shape_text(array_.array->shape())},
          {"user.npyfs.records", std::to_string(array_.records)},
          {"user.npyfs.source", source_text(array_.sources)},
          {kAccessXattr, std::string(access_word(array_))}};
}

std::optional<std::uint64_t> NpyFile::own_chunks() const {
  const auto* chunks = dynamic_cast<const ChunkSource*>(array_.array.get());
  return chunks != nullptr && array_.array.use_count() == 1 ? std::optional(chunks->serial())
                                                            : std::nullopt;
}

}  // namespace npyfs
