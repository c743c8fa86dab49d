// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/block_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace npyfs {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;

// From here on a block has a mapping of its own: what is not kept is returned to the system as soon
// as it is dropped, however the heap is fragmented.
constexpr std::size_t kLeastMapped = std::size_t{256} << 10;
bool is_mapped(std::size_t nbytes) { return nbytes >= kLeastMapped; }

// Stored chunks differ in size: rounded up to an eighth of a power of two they can use each other's
// memory. Whole pages; no page more is touched than is written to.
std::size_t mapped_nbytes(std::size_t nbytes) {
  const std::size_t step = std::bit_floor(nbytes) / 8;
  if (nbytes + step < nbytes) {
    throw std::bad_alloc();
  }
  return (nbytes + step - 1) & ~(step - 1);
}

std::byte* map_pages(std::size_t nbytes) {
  void* const got =
      ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
    ::munmap(bytes + nbytes, kHugePage - before);
  }
  // Where the kernel has none to give, small ones do.
  ::madvise(bytes, nbytes, MADV_HUGEPAGE);
  return bytes;
}

// Mappings that were given back, for the next ones of their size: a fresh page costs the system as
// much as a fast decoder takes to fill it, and these may still be in the processor's cache.
class KeptMappings {
 public:
  // Null: there is none of this size.
  std::byte* take(std::size_t nbytes) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = count_; i-- > 0;) {
      if (kept_[i].nbytes == nbytes) {
        std::byte* const bytes = kept_[i].bytes;
        forget(i);
        return bytes;
      }
    }
    return nullptr;
  }

  void keep(std::byte* bytes, std::size_t nbytes) {
    if (nbytes > kMostNbytes) {
      ::munmap(bytes, nbytes);
      return;
    }
    const std::lock_guard lock(mutex_);
    while (count_ == kept_.size() || kept_nbytes_ + nbytes > kMostNbytes) {
      ::munmap(kept_[0].bytes, kept_[0].nbytes);
      forget(0);
    }
    kept_[count_++] = {bytes, nbytes};
    kept_nbytes_ += nbytes;
  }

 private:
  static constexpr std::size_t kMostNbytes = std::size_t{16} << 20;

  struct Mapping {
    std::byte* bytes;
    std::size_t nbytes;
  };

  void forget(std::size_t i) {
    kept_nbytes_ -= kept_[i].nbytes;
    std::move(kept_.begin() + i + 1, kept_.begin() + count_, kept_.begin() + i);
    --count_;
  }

  std::mutex mutex_;
  std::array<Mapping, 32> kept_{};  // the newest last
  std::size_t count_ = 0;
  std::size_t kept_nbytes_ = 0;
};

KeptMappings& kept_mappings() {
  // Never destroyed: threads may end later than statics.
  static KeptMappings* const kept = new KeptMappings;
  return *kept;
}

std::byte* take(std::size_t nbytes) {
  if (is_mapped(nbytes)) {
    const std::size_t mapped = mapped_nbytes(nbytes);
    if (std::byte* const bytes = kept_mappings().take(mapped)) {
      return bytes;
    }
    return mapped < kHugePage ? map_pages(mapped) : map_huge_pages(mapped);
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
    kept_mappings().keep(bytes, mapped_nbytes(nbytes));
  } else {
    std::free(bytes);
  }
}

}  // namespace npyfs
