// SPDX-License-Identifier: Apache-2.0
//
// Memory for decoded chunks: not zeroed, since a decoder fills all of it, and large ones in huge
// pages, since filling fresh pages of 4 KiB costs about as much as a fast decoder does.

#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace npyfs {

// `nbytes` of memory that nobody has written to. Throws std::bad_alloc. Any thread.
std::byte* take_block_memory(std::size_t nbytes);
// `bytes` is what take_block_memory gave for as many bytes.
void give_back_block_memory(std::byte* bytes, std::size_t nbytes) noexcept;

// For a std::vector of bytes whose new elements are left as they are.
template <typename Byte>
struct BlockAllocator {
  static_assert(sizeof(Byte) == 1);
  using value_type = Byte;

  BlockAllocator() = default;
  template <typename Other>
  explicit BlockAllocator(const BlockAllocator<Other>& /*other*/) {}

  Byte* allocate(std::size_t n) { return reinterpret_cast<Byte*>(take_block_memory(n)); }
  void deallocate(Byte* bytes, std::size_t n) noexcept {
    give_back_block_memory(reinterpret_cast<std::byte*>(bytes), n);
  }

  void construct(Byte* /*at*/) noexcept {}
  template <typename From>
  void construct(Byte* at, From&& from) noexcept {
    ::new (static_cast<void*>(at)) Byte(std::forward<From>(from));
  }
  bool operator==(const BlockAllocator&) const = default;
};

using BlockBytes = std::vector<std::byte, BlockAllocator<std::byte>>;

}  // namespace npyfs
