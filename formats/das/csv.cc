// SPDX-License-Identifier: Apache-2.0

#include "formats/das/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string name)
    : text_(text), name_(std::move(name)) {
  at_ = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
    line_ += text_[at_++] == '\n' ? 1 : 0;
  }
  if (at_ >= text_.size()) {
    return false;
  }
  row_line_ = line_;
  fields.clear();
  while (true) {
    if (at_ < text_.size() && text_[at_] == '"') {
      fields.push_back(read_quoted());
    } else {
      const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      fields.emplace_back(text_.substr(at_, end - at_));
      at_ = end;
    }
    if (at_ >= text_.size() || text_[at_] != ',') {
      return true;
    }
    ++at_;
  }
}

// From a quote to what ends it; a doubled one stands for itself.
std::string CsvReader::read_quoted() {
  const std::uint64_t begin_line = line_;
  std::string field;
  for (++at_;; ++at_) {
    if (at_ >= text_.size()) {
      fail(begin_line, "a quote is opened and never closed");
    }
    const char c = text_[at_];
    line_ += c == '\n' ? 1 : 0;
    if (c != '"') {
      field += c;
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      field += c;
      ++at_;
    } else {
      break;
    }
  }
  ++at_;
  if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
    fail(line_, "text follows a closing quote, expected a comma or the end of the line");
  }
  return field;
}

void CsvReader::fail(std::uint64_t line, const std::string& text) const {
  throw file_error(ErrorKind::kCorrupt, name_, fmt::format("line {}: {}", line, text));
}

}  // namespace npyfs
