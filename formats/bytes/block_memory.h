// SPDX-License-Identifier: Apache-2.0
//
// Memory for chunks, stored and decoded: not zeroed, since a decoder fills all of it; large ones in
// huge pages and, a few of them, kept for the next chunk, since filling fresh pages of 4 KiB costs
// about as much as a fast decoder does.

#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace npyfs {

// `nbytes` of memory with nothing in particular in it. Throws std::bad_alloc. Any thread.
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

// Memory of a size that is known when it is taken: what is read in to be decoded.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t nbytes)
      : bytes_(take_block_memory(nbytes)), nbytes_(nbytes), taken_nbytes_(nbytes) {}
  ~Buffer() {
    if (bytes_ != nullptr) {
      give_back_block_memory(bytes_, taken_nbytes_);
    }
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }

  std::span<std::byte> bytes() { return {bytes_, nbytes_}; }
  std::span<const std::byte> bytes() const { return {bytes_, nbytes_}; }
  // Keeps the first `nbytes`.
  void shorten(std::size_t nbytes) { nbytes_ = nbytes; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(nbytes_, other.nbytes_);
    std::swap(taken_nbytes_, other.taken_nbytes_);
  }

  std::byte* bytes_ = nullptr;
  std::size_t nbytes_ = 0;
  std::size_t taken_nbytes_ = 0;
};

}  // namespace npyfs
