// SPDX-License-Identifier: Apache-2.0

#include "fs/npy_file.h"

#include <algorithm>
#include <chrono>

#include "formats/bytes/npy_header.h"

namespace npyfs {

namespace {

// numpy's own: a .npy file that is shown as it is need not be aligned otherwise.
constexpr std::uint64_t kUsualAlign = 64;

}  // namespace

NpyFile::NpyFile(NamedArray array, std::uint64_t header_align) : array_(std::move(array)) {
  const Array& data = *array_.array;
  const bool as_it_is = !array_.preamble.empty() && header_align == kUsualAlign;
  header_ = as_it_is
                ? array_.preamble
                : print_npy_header(data.dtype(), data.shape(), data.fortran_order(), header_align);
  mtime_ns_ = newest_mtime_ns(array_.sources);
}

void NpyFile::plan_read(std::uint64_t offset, std::uint64_t nbytes, Plan& plan) const {
  const std::uint64_t end =
      offset < this->nbytes() ? std::min(nbytes, this->nbytes() - offset) + offset : offset;
  const std::uint64_t header_nbytes = header_.size();
  if (offset < std::min(end, header_nbytes)) {
    const std::uint64_t n = std::min(end, header_nbytes) - offset;
    plan.add_memory(std::as_bytes(std::span(header_)).data() + offset, n);
    offset += n;
  }
  if (offset < end) {
    array_.array->plan({offset - header_nbytes, end - header_nbytes}, plan);
  }
}

void NpyFile::require_unchanged() const { npyfs::require_unchanged(array_.sources); }

void NpyFile::check_unchanged() const {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  if (checked_second_.exchange(now, std::memory_order_relaxed) == now) {
    require_unchanged();
    return;
  }
  for (const SourcePtr& source : array_.sources) {
    source->check_unchanged();
  }
}

}  // namespace npyfs
