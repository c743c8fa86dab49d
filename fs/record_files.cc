// SPDX-License-Identifier: Apache-2.0

#include "fs/record_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "formats/arrays/names.h"
#include "formats/bytes/utf8.h"
#include "formats/extents.h"
#include "formats/payloads/payload_table.h"

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

// Where the character of `text` begins that holds the byte `at`, which may be the end; nothing
// where escape_name changes that character.
std::optional<std::size_t> find_plain(std::string_view text, std::size_t at) {
  if (at == text.size()) {
    return at;
  }
  constexpr std::size_t kMostBefore = 3;  // bytes of a character before its last
  std::size_t begin = at;
  while (begin > 0 && at - begin < kMostBefore && (text[begin] & '\xc0') == '\x80') {
    --begin;
  }
  std::size_t end = begin;
  const auto point = next_code_point(text, end);
  const bool plain = point && !is_surrogate(*point) && end > at && *point != U'/' && *point != 0;
  return plain ? std::optional(begin) : std::nullopt;
}

// As escape_name(a).compare(escape_name(b)), without making these where the first difference tells.
int compare_escaped(std::string_view a, std::string_view b) {
  const std::size_t both = std::min(a.size(), b.size());
  const auto same = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(both), b.begin()).first -
      a.begin());
  // Names of at most two bytes may be escaped as a whole. Where the one's character begins before
  // the difference and the other's at it, what precedes is a character here and escaped there.
  if (both > 2) {
    const auto plain = find_plain(a, same);
    if (plain && plain == find_plain(b, same)) {
      return a.substr(same).compare(b.substr(same));
    }
  }
  return escape_name(a).compare(escape_name(b));
}

}  // namespace

RecordFiles::RecordFiles(std::shared_ptr<const RecordTable> table)
    : table_(std::move(table)), sources_(table_->sources()), units_(table_->stored().size()) {}

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
      return escape_name(table_->text_key(record));
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
  return compare_escaped(table_->text_key(a), table_->text_key(b));
}

// By the text of the key, as order() has text keys; integer keys are asked for as integers.
int RecordFiles::compare_key(std::uint64_t record, std::string_view key) const {
  if (table_->key_kind() == KeyKind::kInteger) {
    std::int64_t number = 0;
    std::from_chars(key.data(), key.data() + key.size(), number);
    const std::int64_t own = table_->int_key(record);
    return own < number ? -1 : (own > number ? 1 : 0);
  }
  // What is escaped stays as it is when it is escaped once more.
  return compare_escaped(table_->text_key(record), key);
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
    return key;
  }
  const auto begin = order().begin() + static_cast<std::ptrdiff_t>(equal.first);
  const auto end = order().begin() + static_cast<std::ptrdiff_t>(equal.last);
  const auto at = std::lower_bound(begin, end, record);
  const auto n = static_cast<std::uint64_t>(at - begin) + 1;
  // The i-th number that is taken is passed over by those that would get it or a later one.
  const std::span<const Taken> taken = taken_numbers(equal);
  const auto passed = std::partition_point(taken.begin(), taken.end(), [&](const Taken& number) {
    return number.n - static_cast<std::uint64_t>(&number - taken.data()) <= n;
  });
  return fmt::format("{}~{}", key, n + static_cast<std::uint64_t>(passed - taken.begin()));
}

// Every n from 2 on for which "<key>~n" is a key itself, ascending: no other record of the key is
// called that.
std::span<const RecordFiles::Taken> RecordFiles::taken_numbers(const Equal& equal) const {
  if (table_->key_kind() != KeyKind::kText) {
    return {};
  }
  std::call_once(taken_found_, [this] { find_taken(); });
  const auto [first, last] =
      std::equal_range(taken_.begin(), taken_.end(), Taken{equal.first, 0},
                       [](const Taken& a, const Taken& b) { return a.first < b.first; });
  return {first, last};
}

// Of all keys at once, each looked at once: a list may have as many keys that begin with "<key>~"
// as it has records of <key>.
void RecordFiles::find_taken() const {
  for (std::uint64_t record = 0; record < table_->size(); ++record) {
    // Neither the tilde nor digits are ever escaped.
    const std::string_view own = table_->text_key(record);
    const std::size_t tilde = own.rfind('~');
    if (tilde == std::string_view::npos) {
      continue;
    }
    const std::string_view digits = own.substr(tilde + 1);
    const auto number = parse_number(digits);
    if (!number || *number < 2 || digits.front() == '0') {
      continue;
    }
    std::string key = key_text(record);
    key.resize(key.rfind('~'));
    const Equal equal = equal_range(key);
    // A key that is escaped as a whole is another one with something behind it.
    if (equal.last - equal.first > 1 && key_text(order()[equal.first]) == key) {
      taken_.push_back({equal.first, *number});
    }
  }
  std::sort(taken_.begin(), taken_.end());
  taken_.erase(std::unique(taken_.begin(), taken_.end()), taken_.end());
}

std::optional<std::uint64_t> RecordFiles::find(std::string_view name) const {
  for (std::uint64_t i = 0; i < units_; ++i) {
    const std::string& fixed = table_->stored()[i].extension;
    const std::size_t suffix = fixed.empty() ? name.size() - std::min(name.size(), name.rfind('.'))
                                             : escape_name(fixed).size() + 1;
    if (suffix == 0 || suffix >= name.size()) {
      continue;
    }
    const std::string_view stem = name.substr(0, name.size() - suffix);
    for (const std::uint64_t record : find_stem(stem)) {
      // The extension last: it may have to be read.
      const std::uint64_t file = record * units_ + i;
      if (shorten_name(this->stem(record), suffix) == stem && exists(file) &&
          extension(file) == name.substr(stem.size() + 1)) {
        return file;
      }
    }
  }
  return std::nullopt;
}

// Records that may have this stem; the caller compares the names they really have.
std::vector<std::uint64_t> RecordFiles::find_stem(std::string_view stem) const {
  std::vector<std::uint64_t> records;
  if (table_->key_kind() == KeyKind::kNone) {
    const auto number = parse_number(stem);
    if (number && *number < table_->size()) {
      records.push_back(*number);
    }
    return records;
  }
  find_numbered(std::string(stem), 1, records);
  const std::size_t tilde = stem.rfind('~');
  if (tilde != std::string::npos) {
    if (const auto number = parse_number(stem.substr(tilde + 1)); number && *number > 1) {
      find_numbered(std::string(stem.substr(0, tilde)), *number, records);
    }
  }
  if (table_->key_kind() == KeyKind::kText && stem.size() >= kShortenedStemNbytes) {
    find_shortened(stem, records);
  }
  return records;
}

// By the hash that ends a shortened name.
void RecordFiles::find_shortened(std::string_view stem, std::vector<std::uint64_t>& records) const {
  constexpr std::size_t kHashNbytes = 16;
  const auto hash_of = [](std::string_view shortened) {
    const std::string_view digits = shortened.substr(shortened.size() - kHashNbytes);
    std::uint64_t hash = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
    return hash;
  };
  std::call_once(long_keys_found_, [&] {
    for (std::uint64_t record = 0; record < table_->size(); ++record) {
      if (key_text(record).size() >= kShortenedStemNbytes) {
        constexpr std::size_t kAnyway = 255;  // bytes behind it, which leave no room
        long_keys_.emplace_back(hash_of(shorten_name(this->stem(record), kAnyway)), record);
      }
    }
    std::sort(long_keys_.begin(), long_keys_.end());
  });
  const std::uint64_t hash = hash_of(stem);
  for (auto at = std::lower_bound(long_keys_.begin(), long_keys_.end(),
                                  std::pair<std::uint64_t, std::uint64_t>{hash, 0});
       at != long_keys_.end() && at->first == hash; ++at) {
    records.push_back(at->second);
  }
}

// The record of `key` that is called "<key>~n", or "<key>" for n = 1, if there is one.
void RecordFiles::find_numbered(const std::string& key, std::uint64_t n,
                                std::vector<std::uint64_t>& records) const {
  if (table_->key_kind() == KeyKind::kInteger) {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size()) {
      return;
    }
  }
  const Equal equal = equal_range(key);
  std::uint64_t ordinal = n;
  if (n > 1) {
    const std::span<const Taken> taken = taken_numbers(equal);
    const auto before = std::partition_point(taken.begin(), taken.end(),
                                             [&](const Taken& number) { return number.n < n; });
    ordinal -= static_cast<std::uint64_t>(before - taken.begin());
  }
  if (ordinal <= equal.last - equal.first) {
    records.push_back(order()[equal.first + ordinal - 1]);
  }
}

}  // namespace npyfs
