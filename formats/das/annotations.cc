// SPDX-License-Identifier: Apache-2.0

#include "formats/das/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "formats/bytes/error.h"
#include "formats/bytes/text_view.h"
#include "formats/das/csv.h"

namespace npyfs {

namespace {

// A row takes some 40 bytes: this is a row for every millisecond of an hour, and far more.
constexpr std::uint64_t kMostNbytes = std::uint64_t{256} << 20;

constexpr std::string_view kBlanks = " \t";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// As pandas reads a column of numbers; nothing for what is none.
std::optional<double> parse_seconds(std::string_view field) {
  static constexpr std::array<std::string_view, 19> kMissing = {
      "",     "nan",  "NaN",  "NA",  "N/A",      "n/a",     "null",   "NULL",     "None",   "<NA>",
      "-nan", "-NaN", "#N/A", "#NA", "#N/A N/A", "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN"};
  field = strip(field, kBlanks);
  if (std::find(kMissing.begin(), kMissing.end(), field) != kMissing.end()) {
    return kNan;
  }
  field.remove_prefix(field.starts_with('+') ? 1 : 0);
  double value = 0;
  const auto [end, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (fault != std::errc() || end != field.data() + field.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

class AnnotationParser {
 public:
  AnnotationParser(std::string_view text, const std::string& name)
      : name_(name), rows_(text, name) {}

  std::vector<Annotation> parse() {
    read_header();
    std::vector<Annotation> annotations;
    while (rows_.next(fields_)) {
      annotations.push_back(read_row());
    }
    return annotations;
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw file_error(ErrorKind::kCorrupt, name_, fmt::format("line {}: {}", rows_.line(), text));
  }

  // Columns are found by their names: pandas may have written an index before them.
  void read_header() {
    if (!rows_.next(fields_)) {
      throw file_error(ErrorKind::kCorrupt, name_,
                       "the file is empty, expected a header name,start_seconds,stop_seconds");
    }
    columns_ = fields_.size();
    name_at_ = find_column("name");
    start_at_ = find_column("start_seconds");
    stop_at_ = find_column("stop_seconds");
  }

  std::size_t find_column(std::string_view wanted) const {
    const auto found = std::find_if(fields_.begin(), fields_.end(), [&](const std::string& field) {
      return strip(field, kBlanks) == wanted;
    });
    if (found == fields_.end()) {
      fail(fmt::format("there is no column {}, expected name, start_seconds and stop_seconds",
                       wanted));
    }
    return static_cast<std::size_t>(found - fields_.begin());
  }

  Annotation read_row() {
    if (fields_.size() > columns_) {
      fail(fmt::format("there are {} fields, expected the {} of the header", fields_.size(),
                       columns_));
    }
    fields_.resize(columns_);  // what is missing is empty
    Annotation row;
    row.name = fields_[name_at_];
    row.line = rows_.line();
    if (row.name.empty()) {
      fail("the name is empty, expected that of a class");
    }
    row.start_seconds = number(start_at_, "start_seconds");
    row.stop_seconds = number(stop_at_, "stop_seconds");
    if (row.marks() && std::isnan(row.stop_seconds)) {
      fail("stop_seconds is missing where there is a start_seconds, expected a number");
    }
    return row;
  }

  double number(std::size_t column, std::string_view what) const {
    const auto value = parse_seconds(fields_[column]);
    if (!value) {
      fail(fmt::format("{} is '{}', expected a number or nothing", what,
                       printable(fields_[column].substr(0, 60))));
    }
    return *value;
  }

  std::string name_;
  CsvReader rows_;
  std::vector<std::string> fields_;
  std::size_t columns_ = 0;
  std::size_t name_at_ = 0;
  std::size_t start_at_ = 0;
  std::size_t stop_at_ = 0;
};

// Python's int(), and what a slice of `frames` makes of it.
std::uint64_t slice_bound(double value, std::uint64_t frames) {
  const auto limit = static_cast<double>(frames);
  double bound = std::trunc(value);
  if (bound < 0) {
    bound += limit;
  }
  return bound <= 0 ? 0 : bound >= limit ? frames : static_cast<std::uint64_t>(bound);
}

}  // namespace

bool Annotation::is_event() const {
  return marks() ? start_seconds == stop_seconds : std::isnan(stop_seconds);
}

std::vector<Annotation> parse_annotations(std::string_view text, const std::string& name) {
  return AnnotationParser(text, name).parse();
}

std::vector<Annotation> read_annotations(const ByteSource& source) {
  return parse_annotations(read_whole(source, kMostNbytes), source.name());
}

FrameRange marked_frames(const Annotation& annotation, double rate_hz, std::uint64_t frames) {
  const FrameRange range{slice_bound(annotation.start_seconds * rate_hz, frames),
                         slice_bound(annotation.stop_seconds * rate_hz + 1, frames)};
  return range.begin < range.end ? range : FrameRange{};
}

}  // namespace npyfs
