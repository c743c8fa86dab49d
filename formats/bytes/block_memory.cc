// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/block_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace npyfs {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;

// From here on a block has a mapping of its own: it is returned to the system as soon as it is
// dropped, however the heap is fragmented.
constexpr std::size_t kLeastMapped = std::size_t{256} << 10;
bool is_mapped(std::size_t nbytes) { return nbytes >= kLeastMapped; }

std::size_t whole_pages(std::size_t nbytes) { return (nbytes + kPage - 1) & ~(kPage - 1); }

std::byte* map_pages(std::size_t nbytes) {
  void* const got = ::mmap(nullptr, whole_pages(nbytes), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return static_cast<std::byte*>(got);
}

// Begins a huge page.
std::byte* map_huge_pages(std::size_t nbytes) {
  if (nbytes + kHugePage < nbytes) {
    throw std::bad_alloc();
  }
  std::byte* const begin = map_pages(nbytes + kHugePage);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) & (kHugePage - 1);
  std::byte* const bytes = begin + before;
  if (before > 0) {
    ::munmap(begin, before);
  }
  if (kHugePage > before) {
    ::munmap(bytes + whole_pages(nbytes), kHugePage - before);
  }
  // Where the kernel has none to give, small ones do.
  ::madvise(bytes, whole_pages(nbytes), MADV_HUGEPAGE);
  return bytes;
}

std::byte* take(std::size_t nbytes) {
  if (is_mapped(nbytes)) {
    return nbytes < kHugePage ? map_pages(nbytes) : map_huge_pages(nbytes);
  }
  auto* const bytes = static_cast<std::byte*>(std::malloc(nbytes + 1));
  if (bytes == nullptr) {
    throw std::bad_alloc();
  }
  return bytes;
}

}  // namespace

std::byte* take_block_memory(std::size_t nbytes) {
  std::byte* const bytes = take(nbytes);
#if defined(__SANITIZE_ADDRESS__)
  // What a decoder forgets to fill must not look right by chance.
  std::memset(bytes, 0xa5, nbytes);
#endif
  return bytes;
}

void give_back_block_memory(std::byte* bytes, std::size_t nbytes) noexcept {
  if (is_mapped(nbytes)) {
    ::munmap(bytes, whole_pages(nbytes));
  } else {
    std::free(bytes);
  }
}

}  // namespace npyfs
