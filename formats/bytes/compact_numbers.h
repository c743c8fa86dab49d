// SPDX-License-Identifier: Apache-2.0
//
// Many offsets or sizes in little memory: nothing each where they are a progression, as those of
// equal records are, else 4 bytes each while 64 neighbours lie within 2 GiB, else 8.

#pragma once

#include <cstdint>

#include "formats/bytes/index_page.h"
#include "formats/bytes/page_array.h"

namespace npyfs {

// Built by one thread, then immutable.
class CompactNumbers {
 public:
  void append(std::uint64_t value);
  void shrink();

  std::uint64_t size() const { return size_; }
  std::uint64_t operator[](std::uint64_t index) const {
    switch (form_) {
      case Form::kProgression:
        return first_ + index * stride_;
      case Form::kNear:
        return bases_[index / kGroup] + near_[index];
      case Form::kWide:
        break;
    }
    return wide_[index];
  }
  // Whether each is the one before plus stride().
  bool is_progression() const { return form_ == Form::kProgression; }
  std::uint64_t stride() const { return stride_; }

  void write(PageWriter& page) const;
  // Throws kCorrupt where the page does not hold such numbers.
  static CompactNumbers read(PageReader& page);

 private:
  enum class Form : std::uint8_t { kProgression, kNear, kWide };
  static constexpr std::uint64_t kGroup = 64;

  void append_near(std::uint64_t index, std::uint64_t value);
  void become_near();
  void become_wide(std::uint64_t size);

  Form form_ = Form::kProgression;
  std::uint64_t size_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t stride_ = 0;
  PageArray<std::uint64_t> bases_;  // of each group: 2 GiB below its first number, modulo 2^64
  PageArray<std::uint32_t> near_;   // how far above it each number is
  PageArray<std::uint64_t> wide_;
};

}  // namespace npyfs
