// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/cursor.h"

#include <fmt/format.h>

namespace npyfs {

void Cursor::expect(char byte, const char* what) {
  const std::uint64_t at = offset_;
  const int found = take();
  if (found < 0) {
    throw cut(what);
  }
  if (found != static_cast<unsigned char>(byte)) {
    throw fault(at, fmt::format("the size byte of {} is {:#04x}, expected {:#04x}", what, found,
                                static_cast<unsigned char>(byte)));
  }
}

void Cursor::hop(std::uint64_t nbytes, const char* what) {
  if (nbytes > left()) {
    throw fault(offset_, fmt::format("{} is {} bytes, expected at most {} as the file ends there",
                                     what, nbytes, left()));
  }
  seek(offset_ + nbytes);
}

Error Cursor::fault(std::uint64_t offset, const std::string& text) const {
  return corrupt_at(source_.name(), offset, text + "; the file is damaged or no Kaldi table");
}

Error Cursor::cut(const char* what) const {
  return fault(offset_, fmt::format("{} is cut off, expected more bytes than the file has", what));
}

}  // namespace npyfs
