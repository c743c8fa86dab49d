// SPDX-License-Identifier: Apache-2.0
//
// Many short strings in one piece of memory: 8 bytes each and the text.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

// Built by one thread, then immutable.
class StringList {
 public:
  void append(std::string_view text) {
    text_ += text;
    ends_.push_back(text_.size());
  }
  void shrink() {
    text_.shrink_to_fit();
    ends_.shrink_to_fit();
  }

  std::uint64_t size() const { return ends_.size(); }
  std::string_view operator[](std::uint64_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(text_).substr(begin, ends_[index] - begin);
  }

 private:
  std::string text_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace npyfs
