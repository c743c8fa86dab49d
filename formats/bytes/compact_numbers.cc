// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/compact_numbers.h"

#include <limits>

namespace npyfs {

namespace {

constexpr std::uint64_t kReach = std::uint64_t{1} << 31;

}  // namespace

void CompactNumbers::append(std::uint64_t value) {
  if (form_ == Form::kProgression) {
    if (size_ == 0) {
      first_ = value;
    } else if (size_ == 1 && value >= first_) {
      stride_ = value - first_;
    }
    if (value != first_ + size_ * stride_) {
      become_near();
    }
  }
  if (form_ == Form::kNear) {
    append_near(size_, value);
  } else if (form_ == Form::kWide) {
    wide_.push_back(value);
  }
  ++size_;
}

// Or, if it is too far away, all become wide.
void CompactNumbers::append_near(std::uint64_t index, std::uint64_t value) {
  if (index % kGroup == 0) {
    bases_.push_back(value - kReach);
  }
  const std::uint64_t above = value - bases_.back();
  if (above <= std::numeric_limits<std::uint32_t>::max()) {
    near_.push_back(static_cast<std::uint32_t>(above));
    return;
  }
  become_wide(index);
  wide_.push_back(value);
}

void CompactNumbers::become_near() {
  form_ = Form::kNear;
  for (std::uint64_t i = 0; i < size_; ++i) {
    const std::uint64_t value = first_ + i * stride_;
    if (form_ == Form::kNear) {
      append_near(i, value);
    } else {
      wide_.push_back(value);
    }
  }
}

void CompactNumbers::become_wide(std::uint64_t size) {
  wide_.reserve(size + 1);
  for (std::uint64_t i = 0; i < size; ++i) {
    wide_.push_back(bases_[i / kGroup] + near_[i]);
  }
  bases_.clear();
  near_.clear();
  form_ = Form::kWide;
}

void CompactNumbers::shrink() {
  bases_.shrink_to_fit();
  near_.shrink_to_fit();
  wide_.shrink_to_fit();
}

void CompactNumbers::write(PageWriter& page) const {
  page.number(static_cast<std::uint64_t>(form_));
  page.number(size_);
  switch (form_) {
    case Form::kProgression:
      page.number(first_);
      page.number(stride_);
      return;
    case Form::kNear:
      page.array(bases_);
      page.array(near_);
      return;
    case Form::kWide:
      page.array(wide_);
  }
}

CompactNumbers CompactNumbers::read(PageReader& page) {
  CompactNumbers numbers;
  numbers.form_ = static_cast<Form>(page.number(static_cast<std::uint64_t>(Form::kWide)));
  numbers.size_ = page.number();
  switch (numbers.form_) {
    case Form::kProgression:
      numbers.first_ = page.number();
      numbers.stride_ = page.number();
      break;
    case Form::kNear:
      numbers.bases_ =
          page.array<std::uint64_t>(numbers.size_ / kGroup + (numbers.size_ % kGroup != 0 ? 1 : 0));
      numbers.near_ = page.array<std::uint32_t>(numbers.size_);
      break;
    case Form::kWide:
      numbers.wide_ = page.array<std::uint64_t>(numbers.size_);
  }
  return numbers;
}

}  // namespace npyfs
