// SPDX-License-Identifier: Apache-2.0
//
// Many short strings in one piece of memory: 4 bytes each and the text; of equal length the text
// alone.

#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "formats/bytes/compact_numbers.h"
#include "formats/bytes/index_page.h"
#include "formats/bytes/page_array.h"

namespace npyfs {

// Built by one thread, then immutable.
class StringList {
 public:
  void append(std::string_view text) {
    begins_.append(text_.size());
    text_.append(std::span<const char>(text));
  }
  void shrink() {
    text_.shrink_to_fit();
    begins_.shrink();
  }

  std::uint64_t size() const { return begins_.size(); }
  std::string_view operator[](std::uint64_t index) const {
    const std::uint64_t end = index + 1 < size() ? begins_[index + 1] : text_.size();
    // What a damaged page says does not lead out of the text.
    const std::uint64_t within = std::min<std::uint64_t>(end, text_.size());
    const std::uint64_t begin = std::min(begins_[index], within);
    return {text_.data() + begin, within - begin};
  }

  void write(PageWriter& page) const {
    begins_.write(page);
    page.array(text_);
  }
  static StringList read(PageReader& page) {
    StringList list;
    list.begins_ = CompactNumbers::read(page);
    list.text_ = page.array<char>();
    return list;
  }

 private:
  CompactNumbers begins_;
  PageArray<char> text_;
};

}  // namespace npyfs
