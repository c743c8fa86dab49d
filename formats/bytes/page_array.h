// SPDX-License-Identifier: Apache-2.0
//
// An array that is built in memory, or lies in a page of a kept index (index_page.h) and is mapped
// from there. Whoever reads it cannot tell.

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace npyfs {

// Built by one thread, then immutable. What lies in a page is never changed or appended to.
template <typename T>
class PageArray {
  static_assert(std::is_trivially_copyable_v<T>, "its bytes are what is kept");

 public:
  PageArray() = default;
  // `values` lie in `memory`, which is held.
  PageArray(std::span<const T> values, std::shared_ptr<const void> memory)
      : values_(values), memory_(std::move(memory)) {}
  PageArray(PageArray&& other) noexcept { swap(other); }
  PageArray& operator=(PageArray&& other) noexcept {
    PageArray(std::move(other)).swap(*this);
    return *this;
  }

  void push_back(const T& value) {
    assert(memory_ == nullptr);
    built_.push_back(value);
    values_ = built_;
  }
  void append(std::size_t count, const T& value) {
    assert(memory_ == nullptr);
    built_.insert(built_.end(), count, value);
    values_ = built_;
  }
  void append(std::span<const T> values) {
    assert(memory_ == nullptr);
    built_.insert(built_.end(), values.begin(), values.end());
    values_ = built_;
  }
  void reserve(std::size_t size) {
    assert(memory_ == nullptr);
    built_.reserve(size);
    values_ = built_;
  }
  void resize(std::size_t size) {
    assert(memory_ == nullptr);
    built_.resize(size);
    values_ = built_;
  }
  void shrink_to_fit() {
    if (memory_ == nullptr) {
      built_.shrink_to_fit();
      values_ = built_;
    }
  }
  void clear() { PageArray().swap(*this); }

  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  const T& operator[](std::size_t index) const { return values_[index]; }
  const T& back() const { return values_.back(); }
  const T* data() const { return values_.data(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::span<const T> span() const { return values_; }
  // While it is built.
  std::span<T> built() { return built_; }

 private:
  void swap(PageArray& other) noexcept {
    built_.swap(other.built_);
    std::swap(values_, other.values_);
    memory_.swap(other.memory_);
  }

  std::vector<T> built_;
  std::span<const T> values_;  // of `built_`, or in `memory_`
  std::shared_ptr<const void> memory_;
};

}  // namespace npyfs
