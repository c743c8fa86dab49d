// SPDX-License-Identifier: Apache-2.0

#include "fs/npy_file.h"

#include <algorithm>

#include "formats/bytes/npy_header.h"

namespace npyfs {

namespace {

// numpy's own: a .npy file that is shown as it is need not be aligned otherwise.
constexpr std::uint64_t kUsualAlign = 64;

}  // namespace

NpyFile::NpyFile(NamedArray array, std::uint64_t header_align)
    : array_(std::move(array)), as_it_is_(array_.whole != nullptr && header_align == kUsualAlign) {
  const Array& data = *array_.array;
  if (!as_it_is_) {
    header_ = print_npy_header(data.dtype(), data.shape(), data.fortran_order(), header_align);
  }
  header_nbytes_ = as_it_is_ ? array_.whole->header.nbytes : header_.size();
  mtime_ns_ = newest_mtime_ns(array_.sources);
}

void NpyFile::plan_read(std::uint64_t offset, std::uint64_t nbytes, Plan& plan) const {
  const std::uint64_t end =
      offset < this->nbytes() ? std::min(nbytes, this->nbytes() - offset) + offset : offset;
  if (offset < std::min(end, header_nbytes_)) {
    const std::uint64_t n = std::min(end, header_nbytes_) - offset;
    if (as_it_is_) {
      const StoredNpy& whole = *array_.whole;
      plan.add_extent(*whole.source, whole.offset + offset, n, whole.guard());
    } else {
      plan.add_memory(std::as_bytes(std::span(header_)).data() + offset, n);
    }
    offset += n;
  }
  if (offset < end) {
    array_.array->plan({offset - header_nbytes_, end - header_nbytes_}, plan);
  }
}

void NpyFile::require_unchanged() const { npyfs::require_unchanged(array_.sources); }

void NpyFile::check_unchanged(std::int64_t second) const {
  require_unchanged();
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

}  // namespace npyfs
