// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/line_reader.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace npyfs {

namespace {

constexpr std::size_t kBufferNbytes = 1 << 20;

}  // namespace

bool LineReader::next(std::string_view& line) {
  const char* end = nullptr;
  while ((end = find_line_end()) == nullptr) {
    if (read_ == source_.nbytes() || buffer_.size() - begin_ > limit_nbytes_) {
      end = buffer_.data() + buffer_.size();
      break;
    }
    refill();
  }
  const char* const start = buffer_.data() + begin_;
  if (start == buffer_.data() + buffer_.size() && read_ == source_.nbytes()) {
    return false;
  }
  offset_ = read_ - (buffer_.size() - begin_);
  line = {start, static_cast<std::size_t>(end - start)};
  begin_ += line.size() + (end < buffer_.data() + buffer_.size() ? 1 : 0);
  ++number_;
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return true;
}

const char* LineReader::find_line_end() const {
  return static_cast<const char*>(
      std::memchr(buffer_.data() + begin_, '\n', buffer_.size() - begin_));
}

void LineReader::refill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + std::min<std::uint64_t>(kBufferNbytes, source_.nbytes() - read_));
  source_.read_at(read_, std::as_writable_bytes(std::span(buffer_).subspan(kept)));
  read_ += buffer_.size() - kept;
}

}  // namespace npyfs
