// SPDX-License-Identifier: Apache-2.0

#include "fs/record_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "formats/arrays/names.h"
#include "formats/extents.h"
#include "formats/payloads/payload.h"

namespace npyfs {

namespace {

// Names longer than this may have been shortened, see shorten_name.
constexpr std::size_t kShortenedStemNbytes = 200;

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

RecordFiles::RecordFiles(std::shared_ptr<const RecordTable> table)
    : table_(std::move(table)),
      sources_(table_->sources()),
      units_(table_->stored().size()),
      mtime_ns_(newest_mtime_ns(sources_)) {}

bool RecordFiles::exists(std::uint64_t file) const {
  const ByteColumn& column = *unit(file).bytes;
  const std::uint64_t record = file / units_;
  if (column.damage(record) != nullptr) {
    return true;
  }
  std::vector<Extent> extents;
  return column.locate(record, extents);
}

std::string RecordFiles::name(std::uint64_t file) const {
  const std::string extension = this->extension(file);
  return shorten_name(stem(file / units_), extension.size() + 1) + "." + extension;
}

std::uint64_t RecordFiles::nbytes(std::uint64_t file) const {
  const ByteColumn& column = *unit(file).bytes;
  const std::uint64_t record = file / units_;
  if (const Damage* damage = column.damage(record)) {
    return std::max<std::uint64_t>(1, damage->nbytes.value_or(1));
  }
  return stored_nbytes(column, record);
}

void RecordFiles::plan_read(std::uint64_t file, ByteRange range, Plan& plan) const {
  const ByteColumn& column = *unit(file).bytes;
  const std::uint64_t record = file / units_;
  range.end = std::min(range.end, nbytes(file));
  if (range.empty()) {
    return;
  }
  if (const Damage* damage = column.damage(record)) {
    plan.add_damaged(damage->error, range.nbytes());
  } else {
    plan_stored(column, record, range, plan);
  }
}

void RecordFiles::require_unchanged() const { npyfs::require_unchanged(sources_); }

std::string RecordFiles::extension(std::uint64_t file) const {
  const StoredUnit& unit = this->unit(file);
  if (!unit.extension.empty()) {
    return escape_name(unit.extension);
  }
  return std::string(extension_by_magic(read_head(*unit.bytes, file / units_, kMagicNbytes)));
}

std::string RecordFiles::key_text(std::uint64_t record) const {
  switch (table_->key_kind()) {
    case KeyKind::kInteger:
      return std::to_string(table_->int_key(record));
    case KeyKind::kText:
      return std::string(table_->text_key(record));
    case KeyKind::kNone:
      break;
  }
  return std::to_string(record);
}

int RecordFiles::compare_keys(std::uint64_t a, std::uint64_t b) const {
  if (table_->key_kind() == KeyKind::kInteger) {
    const std::int64_t x = table_->int_key(a);
    const std::int64_t y = table_->int_key(b);
    return x < y ? -1 : (x > y ? 1 : 0);
  }
  return table_->text_key(a).compare(table_->text_key(b));
}

// By the text of the key, as order() has text keys; integer keys are asked for as integers.
int RecordFiles::compare_key(std::uint64_t record, std::string_view key) const {
  if (table_->key_kind() == KeyKind::kInteger) {
    const std::int64_t number = parse_integer(key).value_or(0);
    const std::int64_t own = table_->int_key(record);
    return own < number ? -1 : (own > number ? 1 : 0);
  }
  return table_->text_key(record).compare(key);
}

const std::vector<std::uint64_t>& RecordFiles::order() const {
  std::call_once(order_made_, [this] {
    order_.resize(table_->size());
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    const auto before = [this](std::uint64_t a, std::uint64_t b) { return compare_keys(a, b) < 0; };
    if (!std::is_sorted(order_.begin(), order_.end(), before)) {
      std::stable_sort(order_.begin(), order_.end(), before);
    }
  });
  return order_;
}

RecordFiles::Equal RecordFiles::equal_range(std::string_view key) const {
  const auto& sorted = order();
  const auto first = std::partition_point(sorted.begin(), sorted.end(),
                                          [&](std::uint64_t r) { return compare_key(r, key) < 0; });
  const auto last = std::partition_point(first, sorted.end(),
                                         [&](std::uint64_t r) { return compare_key(r, key) <= 0; });
  return {static_cast<std::uint64_t>(first - sorted.begin()),
          static_cast<std::uint64_t>(last - sorted.begin())};
}

// The name without its extension.
std::string RecordFiles::stem(std::uint64_t record) const {
  std::string key = key_text(record);
  if (table_->key_kind() == KeyKind::kNone) {
    return key;
  }
  const Equal equal = equal_range(key);
  if (equal.last - equal.first == 1 || order()[equal.first] == record) {
    return escape_name(key);
  }
  const auto begin = order().begin() + static_cast<std::ptrdiff_t>(equal.first);
  const auto end = order().begin() + static_cast<std::ptrdiff_t>(equal.last);
  const auto at = std::lower_bound(begin, end, record);
  return escape_name(numbered(key, static_cast<std::uint64_t>(at - begin) + 1));
}

// Whether a key "<key>~..." exists, so that numbering must look out for it.
bool RecordFiles::any_key_numbered(const std::string& key) const {
  if (table_->key_kind() != KeyKind::kText) {
    return false;
  }
  const std::string prefix = key + "~";
  const std::uint64_t first = equal_range(prefix).first;
  return first < order().size() && table_->text_key(order()[first]).starts_with(prefix);
}

// "<key>~n" for the `ordinal`-th (from 1) record of that key; an n that is itself a key is skipped.
std::string RecordFiles::numbered(const std::string& key, std::uint64_t ordinal) const {
  if (!any_key_numbered(key)) {
    return fmt::format("{}~{}", key, ordinal);
  }
  std::uint64_t n = 1;
  std::string name;
  for (std::uint64_t left = ordinal - 1; left > 0;) {
    name = fmt::format("{}~{}", key, ++n);
    const Equal taken = equal_range(name);
    left -= taken.first == taken.last ? 1 : 0;
  }
  return name;
}

std::optional<std::uint64_t> RecordFiles::find(std::string_view name) const {
  for (std::uint64_t i = 0; i < units_; ++i) {
    const std::string& extension = table_->stored()[i].extension;
    const std::size_t suffix = extension.empty()
                                   ? name.size() - std::min(name.size(), name.rfind('.'))
                                   : escape_name(extension).size() + 1;
    if (suffix == 0 || suffix >= name.size()) {
      continue;
    }
    const std::string_view stem = name.substr(0, name.size() - suffix);
    for (const std::uint64_t record : find_stem(stem)) {
      // The extension last: it may have to be read.
      const std::uint64_t file = record * units_ + i;
      if (shorten_name(this->stem(record), suffix) == stem && exists(file) &&
          this->extension(file) == name.substr(stem.size() + 1)) {
        return file;
      }
    }
  }
  return std::nullopt;
}

// Records that may have this stem; the caller compares the stems they really have.
std::vector<std::uint64_t> RecordFiles::find_stem(std::string_view stem) const {
  std::vector<std::uint64_t> records;
  if (table_->key_kind() == KeyKind::kNone) {
    const auto number = parse_number(stem);
    if (number && *number < table_->size()) {
      records.push_back(*number);
    }
    return records;
  }
  const std::string key = unescape_name(stem);
  find_first(key, records);
  if (key != stem) {
    find_first(stem, records);
  }
  find_numbered(key, records);
  if (table_->key_kind() == KeyKind::kText && stem.size() >= kShortenedStemNbytes) {
    records.insert(records.end(), long_keys().begin(), long_keys().end());
  }
  return records;
}

// The first record of this key.
void RecordFiles::find_first(std::string_view key, std::vector<std::uint64_t>& records) const {
  if (table_->key_kind() == KeyKind::kInteger && !parse_integer(key)) {
    return;
  }
  const Equal equal = equal_range(key);
  if (equal.first < equal.last) {
    records.push_back(order()[equal.first]);
  }
}

// The later ones that "<key>~n" may mean.
void RecordFiles::find_numbered(std::string_view key, std::vector<std::uint64_t>& records) const {
  const std::size_t tilde = key.rfind('~');
  if (tilde == std::string_view::npos) {
    return;
  }
  const auto n = parse_number(key.substr(tilde + 1));
  const std::string plain(key.substr(0, tilde));
  if (!n || *n < 2 || (table_->key_kind() == KeyKind::kInteger && !parse_integer(plain))) {
    return;
  }
  const Equal equal = equal_range(plain);
  if (any_key_numbered(plain)) {
    // Some numbers are skipped: it is one of the first n.
    for (std::uint64_t i = equal.first; i < std::min(equal.last, equal.first + *n); ++i) {
      records.push_back(order()[i]);
    }
  } else if (*n <= equal.last - equal.first) {
    records.push_back(order()[equal.first + *n - 1]);
  }
}

const std::vector<std::uint64_t>& RecordFiles::long_keys() const {
  std::call_once(long_keys_found_, [this] {
    for (std::uint64_t record = 0; record < table_->size(); ++record) {
      if (escape_name(table_->text_key(record)).size() >= kShortenedStemNbytes) {
        long_keys_.push_back(record);
      }
    }
  });
  return long_keys_;
}

}  // namespace npyfs
