// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/ark.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "formats/bytes/inflate.h"
#include "formats/bytes/words.h"
#include "formats/kaldi/binary.h"
#include "formats/kaldi/specifier.h"
#include "formats/kept_page.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostKeyNbytes = 64 * 1024;

class ArkReader {
 public:
  ArkReader(const SourcePtr& source, Wanted wanted, OpenContext& context)
      : context_(context), cursor_(*source), objects_(std::move(wanted), source->name(), context) {
    index_.sources.push_back(source);
  }

  ObjectIndex read() {
    try {
      while (read_key()) {
        Object object;
        objects_.read(cursor_, false, object);
        objects_.check_company(cursor_, object);
        if (const auto fault = ObjectReader::find_fault(cursor_, object)) {
          index_.damage.add(index_.objects.size(), fault->said(), [&] {
            return Damage{*fault, std::nullopt};
          });
        }
        index_.objects.push_back(object);
        index_.keys.append(key_);
        skip_surplus(object);
      }
    } catch (const Error& error) {
      give_up(error);
    }
    settle();
    check_sorted();
    index_.objects.shrink_to_fit();
    index_.damage.shrink();
    index_.keys.shrink();
    return std::move(index_);
  }

 private:
  // The first line that is not of the kind of all others ends the archive, as any other damage
  // does.
  void settle() {
    std::uint64_t whole = index_.objects.size();
    std::optional<Error> first;
    objects_.settle(index_, [&](std::uint64_t record, const Error& error) {
      if (!first) {
        first = error;
        whole = record;
      }
    });
    if (!first) {
      return;
    }
    index_.objects.resize(whole);
    StringList keys;
    for (std::uint64_t record = 0; record < whole; ++record) {
      keys.append(index_.keys[record]);
    }
    index_.keys = std::move(keys);
    give_up(*first);
  }

  void check_sorted() const {
    const auto record = context_.has(kKeysSorted) ? first_unsorted(index_.keys) : std::nullopt;
    if (record) {
      throw corrupt_at(cursor_.source().name(), index_.objects[*record].offset,
                       unsorted_text(index_.keys, *record));
    }
  }

  // Moves to where the next object begins; false at the end of the archive.
  bool read_key() {
    while (is_blank(cursor_.peek())) {
      cursor_.skip();
    }
    const std::uint64_t begin = cursor_.offset();
    if (begin == 0 && at_binary_object(cursor_)) {
      throw cursor_.fault(0,
                          "the file begins with an object, expected a key before it (an object "
                          "of its own is named in a script: KEY FILE)");
    }
    key_.clear();
    int c = cursor_.peek();
    for (; c >= 0 && !is_blank(c); c = cursor_.peek()) {
      key_ += static_cast<char>(c);
      cursor_.skip();
      if (key_.size() > kMostKeyNbytes) {
        throw cursor_.fault(begin, "a key is longer than 64 KiB, expected less");
      }
    }
    if (c < 0) {
      end_in_key(begin);
      return false;
    }
    const bool control = std::any_of(
        key_.begin(), key_.end(), [](char byte) { return static_cast<unsigned char>(byte) < 32; });
    if (control && objects_.has_guessed()) {
      throw cursor_.fault(
          begin,
          fmt::format("key '{}' has control characters in it, expected none; "
                      "the objects before it were taken for {}, --decode "
                      "x=KIND says what they are",
                      printable(key_.substr(0, 100)), kind_name(index_.objects.back().kind)));
    }
    if (c == ' ' || c == '\t') {
      cursor_.skip();
      // An empty last line may lack its end, nothing else can be empty.
      const bool among_lines =
          !index_.objects.empty() && index_.objects.back().kind == ObjectKind::kLine;
      if (!among_lines && only_blanks_follow()) {
        end_in_key(begin);
        return false;
      }
    } else if (c != '\n') {
      throw cursor_.fault(
          cursor_.offset(),
          fmt::format("the byte behind key '{}' is {:#04x}, expected a blank, a TAB "
                      "or a line end",
                      printable(key_.substr(0, 100)), c));
    }
    return true;
  }

  // Text matrices begin with a blank of their own: one that is cut behind it is not there.
  bool only_blanks_follow() {
    const std::uint64_t begin = cursor_.offset();
    while (cursor_.peek() == ' ' || cursor_.peek() == '\t') {
      cursor_.skip();
    }
    const bool ends = cursor_.peek() < 0;
    cursor_.seek(begin);
    return ends;
  }

  // Kaldi takes that for a clean end and says nothing.
  void end_in_key(std::uint64_t begin) {
    if (key_.empty()) {
      return;
    }
    const Error error =
        cursor_.fault(begin, fmt::format("the file ends with key '{}', expected an object behind "
                                         "it",
                                         printable(key_.substr(0, 100))));
    if (index_.objects.empty()) {
      throw error;
    }
    context_.warn(fmt::format("{} (its last {} bytes are left out)", error.what(), key_.size()));
  }

  // Kaldi writes four bytes more for an empty compressed matrix than it reads.
  void skip_surplus(const Object& object) {
    const bool compressed =
        object.kind >= ObjectKind::kCompressed && object.kind <= ObjectKind::kCompressed3;
    if (!compressed || object.rows > 0) {
      return;
    }
    const auto head = cursor_.look(4);
    if (head.size() == 4 && std::all_of(head.begin(), head.end(),
                                        [](std::byte byte) { return byte == std::byte{0}; })) {
      cursor_.seek(cursor_.offset() + 4);
    }
  }

  void give_up(const Error& error) const {
    const bool of_content =
        error.kind() == ErrorKind::kCorrupt || error.kind() == ErrorKind::kUnsupported;
    if (!of_content || !context_.permissive || index_.objects.empty()) {
      throw error;
    }
    context_.warn(fmt::format("{}; only the {} objects before it are shown", error.what(),
                              index_.objects.size()));
  }

  OpenContext& context_;
  Cursor cursor_;
  ObjectReader objects_;
  ObjectIndex index_;
  std::string key_;
};

}  // namespace

bool looks_like_ark(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t end = text.find_first_of(kBlanks);
  if (end == 0 || end == std::string_view::npos || (text[end] != ' ' && text[end] != '\t')) {
    return false;
  }
  const bool key = std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end),
                               [](char c) { return static_cast<unsigned char>(c) > ' '; });
  const std::string_view object = text.substr(end + 1);
  const bool binary = object.size() >= 3 && object[0] == '\0' && object[1] == 'B';
  return key &&
         (binary || is_wav(head.subspan(end + 1)) || kaldiio_file(head.subspan(end + 1)) != "");
}

ObjectIndex read_ark(SourcePtr source, const Wanted& wanted, OpenContext& context) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source->nbytes(), 3));
  source->read_at(0, head);
  if (is_gzip(head)) {
    InflateOptions options;
    options.permissive = context.permissive;
    options.warn = context.warn;
    options.index = context.index;
    source = open_inflated(std::move(source), *context.cache, options);
  }
  return find_or_scan(
      fmt::format("ark 1 of {}", wanted.name), {&source, 1}, context,
      [&](OpenContext& own) { return ArkReader(source, wanted, own).read(); },
      [&](PageReader& page) { return ObjectIndex::read(page, source); });
}

}  // namespace npyfs
