// SPDX-License-Identifier: Apache-2.0
//
// [webdataset/webdataset:src/webdataset/tariterators.py,
// wenet-e2e/wenet:wenet/dataset/datapipes.py]

#include "formats/archives/tar_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "formats/archives/tar_table.h"
#include "formats/bytes/byte_range.h"
#include "formats/bytes/paths.h"
#include "formats/bytes/utf8.h"
#include "formats/kept_page.h"

namespace npyfs {

namespace {

// What follows the first dot is a field: numbers there would make a field of every member.
constexpr std::size_t kMostParts = 4096;
constexpr int kMostHops = 40;
constexpr std::size_t kStripWindowNbytes = 256;
constexpr std::size_t kMostBlankNbytes = 3;  // U+3000

constexpr std::array<std::string_view, 7> kWenetAudio = {"wav", "flac", "mp3", "m4a",
                                                         "ogg", "opus", "wma"};

// What Python's str.strip() takes off.
bool is_blank(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

// How many bytes of blanks `text` (UTF-8) begins with.
std::size_t leading_blanks(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_code_point(text, at);
    if (!point || !is_blank(*point)) {
      break;
    }
    end = at;
  }
  return end;
}

// How many it ends with.
std::size_t trailing_blanks(std::string_view text) {
  std::size_t kept = text.size();
  for (std::size_t n = 1; n <= std::min(kMostBlankNbytes, kept);) {
    std::size_t at = kept - n;
    const auto point = next_code_point(text.substr(0, kept), at);
    const bool blank = point && at == kept && is_blank(*point);
    kept -= blank ? n : 0;
    n = blank ? 1 : n + 1;
  }
  return text.size() - kept;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  return out;
}

// What a link stands for, within the archive.
std::string link_name(const TarMember& member) {
  if (member.kind == TarMember::Kind::kHardLink) {
    return normal_path(member.link_target);
  }
  const std::size_t slash = member.name.rfind('/');
  const std::string_view folder =
      slash == std::string_view::npos ? std::string_view() : member.name.substr(0, slash);
  return normal_path(folder.empty() ? std::string(member.link_target)
                                    : fmt::format("{}/{}", folder, member.link_target));
}

std::optional<SplitName> split_at_first_dot(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos) {
    return std::nullopt;
  }
  if (dot == base) {
    // The key is the folder with its slash, unless the folder's own name has a dot.
    if (base == 0) {
      return std::nullopt;
    }
    const std::string_view folders = name.substr(0, slash);
    const std::size_t before = folders.rfind('/');
    const std::string_view folder =
        before == std::string_view::npos ? folders : folders.substr(before + 1);
    if (folder.find('.') != std::string_view::npos) {
      return std::nullopt;
    }
  }
  return SplitName{name.substr(0, dot), name.substr(dot + 1)};
}

const char* kind_text(TarMember::Kind kind) {
  switch (kind) {
    case TarMember::Kind::kHardLink:
      return "a hard link";
    case TarMember::Kind::kSymbolicLink:
      return "a symbolic link";
    default:
      return "no regular file";
  }
}

}  // namespace

bool is_tar_metadata(std::string_view name) {
  const std::size_t slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  const std::size_t least = slash == std::string_view::npos ? 2 : 4;
  return first.size() >= least && first.starts_with("__") && first.ends_with("__");
}

std::optional<SplitName> split_member_name(std::string_view name, TarGrouping grouping) {
  if (grouping == TarGrouping::kWebDataset) {
    return is_tar_metadata(name) ? std::nullopt : split_at_first_dot(name);
  }
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) {
    return std::nullopt;
  }
  return SplitName{name.substr(0, dot), name.substr(dot + 1)};
}

bool is_wenet_audio(std::string_view extension) {
  return std::find(kWenetAudio.begin(), kWenetAudio.end(), extension) != kWenetAudio.end();
}

std::optional<std::uint64_t> TarPart::find(std::uint64_t record) const {
  if (records.empty()) {
    return record < places.size() ? std::optional(record) : std::nullopt;
  }
  const auto at = std::lower_bound(records.begin(), records.end(), record);
  if (at == records.end() || *at != record) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(at - records.begin());
}

const TarPart::Sparse* TarPart::find_sparse(std::uint64_t ordinal) const {
  const auto at = std::lower_bound(sparse.begin(), sparse.end(), ordinal,
                                   [](const Sparse& s, std::uint64_t o) { return s.ordinal < o; });
  return at != sparse.end() && at->ordinal == ordinal ? &*at : nullptr;
}

const ByteSource& TarIndex::source_of(std::uint64_t record) const {
  if (sources.size() == 1) {
    return *sources.front();
  }
  const auto next = std::upper_bound(first_records.begin(), first_records.end(), record);
  return *sources[static_cast<std::size_t>(next - first_records.begin()) - 1];
}

void TarPart::write(PageWriter& page) const {
  page.text(extension);
  places.write(page);
  page.array(records);
  page.number(sparse.size());
  for (const Sparse& member : sparse) {
    page.number(member.ordinal);
    page.array(std::span(member.pieces));
  }
  page.flag(any_stripped);
  if (any_stripped) {
    stripped.write(page);
  }
}

TarPart TarPart::read(PageReader& page) {
  TarPart part;
  part.extension = page.text();
  part.places = ExtentColumn::read(page);
  part.records = page.array<std::uint64_t>();
  PageReader::require(part.records.empty() || part.records.size() == part.places.size());
  for (std::uint64_t left = page.number(part.places.size()); left > 0; --left) {
    Sparse& member = part.sparse.emplace_back();
    member.ordinal = page.number();
    const auto pieces = page.array<SparsePiece>();
    member.pieces.assign(pieces.begin(), pieces.end());
  }
  part.any_stripped = page.flag();
  if (part.any_stripped) {
    part.stripped = ExtentColumn::read(page);
    PageReader::require(part.stripped.size() == part.places.size());
  }
  return part;
}

void TarIndex::write(PageWriter& page) const {
  page.array(std::span(first_records));
  keys.write(page);
  page.number(parts.size());
  for (const TarPart& part : parts) {
    part.write(page);
  }
}

TarIndex TarIndex::read(PageReader& page, SourcePtr source) {
  TarIndex index;
  const auto first_records = page.array<std::uint64_t>(1);
  index.first_records.assign(first_records.begin(), first_records.end());
  index.sources.push_back(std::move(source));
  index.keys = StringList::read(page);
  PageReader::require(index.first_records[0] == 0);
  for (std::uint64_t left = page.number(kMostParts); left > 0; --left) {
    index.parts.push_back(TarPart::read(page));
  }
  return index;
}

TarIndex index_tar(const SourcePtr& shard, OpenContext& context) {
  return find_or_scan(
      "tar 1", {&shard, 1}, context,
      [&](OpenContext& own) {
        require_tar(*shard);
        TarIndexer indexer(TarGrouping::kWebDataset, own);
        indexer.add_shard(shard);
        return indexer.finish();
      },
      [&](PageReader& page) { return TarIndex::read(page, shard); });
}

TarIndexer::TarIndexer(TarGrouping grouping, OpenContext& context)
    : grouping_(grouping), context_(context) {
  index_.grouping = grouping;
}

void TarIndexer::warn(const std::string& text) const {
  if (context_.warn) {
    context_.warn(text);
  }
}

void TarIndexer::add_shard(SourcePtr source) {
  source_ = source.get();
  // The shard before may have thrown half way.
  link_targets_.clear();
  link_targets_read_ = false;
  left_out_ = FaultTally("members", "left out");
  twice_ = FaultTally("samples", "left out");
  open_ = bad_ = false;
  pending_count_ = next_part_ = 0;
  const std::uint64_t before = index_.size();
  index_.sources.push_back(std::move(source));
  index_.first_records.push_back(before);
  TarWalk walk(*source_);
  TarMember member;
  bool boundary_said = false;
  try {
    while (walk.next(member)) {
      if (member.begins_archive) {
        end_sample();
        if (!boundary_said) {
          warn(corrupt_at(source_->name(), member.header_offset,
                          "another archive begins behind the end of the first, expected one; its "
                          "members are shown, too (tar itself and other readers stop before them)")
                   .what());
        }
        boundary_said = true;
      }
      take(member);
    }
    end_sample();
    if (!walk.ended()) {
      warn(file_error(ErrorKind::kCorrupt, source_->name(),
                      "the archive has no end, expected two blocks of zeroes; its writer has died "
                      "or is still at work, members may be missing")
               .what());
    }
    if (const auto& garbage = walk.garbage()) {
      // A single block of zeroes may be a header that was wiped out; behind the end there may be
      // another archive whose first header is damaged.
      const char* const what =
          garbage->zeroes_before > kTarBlock
              ? "what follows the end of the archive is no header, expected zeroes or another "
                "archive"
              : "what follows a single block of zeroes is no header, expected a second such block";
      warn(corrupt_at(
               source_->name(), garbage->offset,
               fmt::format("{}; it is passed over, as tar does, members may be missing", what))
               .what());
    }
    if (walk.search_given_up()) {
      warn(file_error(ErrorKind::kCorrupt, source_->name(),
                      "more than 1 GiB of zeroes follow the end of the archive, expected the end "
                      "of the file; whether another archive follows was not looked at")
               .what());
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt || !context_.permissive) {
      throw;
    }
    settle_after(walk);
    if (index_.size() == before) {
      throw;
    }
    warn(fmt::format("{}; the {} samples before it are shown", error.what(),
                     index_.size() - before));
  }
  say_left_out();
}

// The shard is damaged: the sample being read is kept if it is whole.
void TarIndexer::settle_after(const TarWalk& walk) {
  const std::string& name = walk.name_at_fault();
  bool whole = walk.ended() || is_whole();
  if (!walk.ended() && !name.empty()) {
    const auto split = split_member_name(name, grouping_);
    whole = !split || split->key != key_;
  }
  bad_ = bad_ || !whole;
  end_sample();
}

// As far as the sample before tells.
bool TarIndexer::is_whole() const {
  return std::all_of(last_parts_.begin(), last_parts_.end(), [&](std::size_t part) {
    return std::any_of(pending_.begin(),
                       pending_.begin() + static_cast<std::ptrdiff_t>(pending_count_),
                       [&](const Pending& pending) { return pending.part == part; });
  });
}

void TarIndexer::take(const TarMember& member) {
  switch (member.kind) {
    case TarMember::Kind::kDirectory:
      return;
    case TarMember::Kind::kFile:
      take_file(member, {member.offset, member.nbytes, member.sparse, member.pieces});
      return;
    case TarMember::Kind::kHardLink:
    case TarMember::Kind::kSymbolicLink:
      if (grouping_ == TarGrouping::kWenet) {
        if (const auto place = follow(member)) {
          take_file(member, *place);
        } else {
          leave_out(member, fmt::format("is a link to '{}', which is no file of the archive",
                                        printable(member.link_target)));
        }
        return;
      }
      break;
    case TarMember::Kind::kOther:
      break;
  }
  leave_out(member, fmt::format("is {}, expected a regular file", kind_text(member.kind)));
}

void TarIndexer::take_file(const TarMember& member, const Place& place) {
  const auto split = split_member_name(member.name, grouping_);
  if (!split) {
    if (grouping_ == TarGrouping::kWenet || !is_tar_metadata(member.name)) {
      leave_out(member, "has no extension, expected KEY.EXTENSION");
    }
    return;
  }
  begin_sample(split->key);
  const std::size_t part = find_part(split->extension);
  if (take_twice(part, split->extension, member)) {
    return;
  }
  if (pending_count_ == pending_.size()) {
    pending_.emplace_back();
  }
  pending_[pending_count_].part = part;
  pending_[pending_count_].place = place;
  ++pending_count_;
}

// Whether the sample has the field already and that settles it.
bool TarIndexer::take_twice(std::size_t part, std::string_view extension, const TarMember& member) {
  const bool audio = grouping_ == TarGrouping::kWenet && is_wenet_audio(extension);
  const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(pending_count_);
  const auto same = std::find_if(pending_.begin(), end, [&](const Pending& pending) {
    return pending.part == part || (audio && is_wenet_audio(index_.parts[pending.part].extension));
  });
  if (same == end) {
    return false;
  }
  if (grouping_ == TarGrouping::kWenet) {
    std::rotate(same, same + 1, end);
    --pending_count_;
    return false;
  }
  const Error error = corrupt_at(
      source_->name(), member.header_offset,
      fmt::format("field '{}' is there twice in sample '{}' (the second is '{}'), expected once",
                  printable(index_.parts[part].extension), printable(key_),
                  printable(member.name)));
  if (!context_.permissive) {
    throw Error(ErrorKind::kUnsupported,
                std::string(error.what()) + "; --permissive leaves such samples out");
  }
  if (!bad_) {
    twice_.add(error);
  }
  bad_ = true;
  return true;
}

void TarIndexer::begin_sample(std::string_view key) {
  if (!open_ || key != key_) {
    end_sample();
    open_ = true;
    key_ = key;
  }
}

void TarIndexer::end_sample() {
  if (open_ && !bad_ && pending_count_ > 0) {
    const std::uint64_t record = index_.size();
    last_parts_.clear();
    for (std::size_t i = 0; i < pending_count_; ++i) {
      append(index_.parts[pending_[i].part], record, pending_[i].place);
      last_parts_.push_back(pending_[i].part);
    }
    index_.keys.append(key_);
  }
  open_ = bad_ = false;
  pending_count_ = 0;
  next_part_ = 0;
}

std::size_t TarIndexer::find_part(std::string_view extension) {
  // Samples have the same fields in the same order as a rule.
  if (!last_parts_.empty() && next_part_ < last_parts_.size()) {
    const std::size_t guess = last_parts_[next_part_];
    if (index_.parts[guess].extension == extension) {
      ++next_part_;
      return guess;
    }
  }
  extension_ = grouping_ == TarGrouping::kWebDataset ? lower(extension) : std::string(extension);
  const auto [at, is_new] = part_numbers_.emplace(extension_, index_.parts.size());
  if (is_new) {
    if (index_.parts.size() == kMostParts) {
      throw file_error(ErrorKind::kTooLarge, source_->name(),
                       fmt::format("there are more than {} different extensions ('{}' is the next "
                                   "one), expected few: each is a field; dots belong behind the "
                                   "key",
                                   kMostParts, printable(extension_)));
    }
    index_.parts.emplace_back().extension = extension_;
  }
  ++next_part_;
  return at->second;
}

void TarIndexer::append(TarPart& part, std::uint64_t record, const Place& place) {
  const std::uint64_t ordinal = part.places.size();
  if (part.records.empty() && ordinal != record) {
    for (std::uint64_t i = 0; i < ordinal; ++i) {
      part.records.push_back(i);
    }
  }
  if (ordinal != record || !part.records.empty()) {
    part.records.push_back(record);
  }
  if (place.sparse) {
    part.sparse.push_back({ordinal, place.pieces});
  }
  if (grouping_ == TarGrouping::kWenet && part.extension == "txt") {
    append_stripped(part, place);
  }
  part.places.append(place.offset, place.nbytes);
}

void TarIndexer::append_stripped(TarPart& part, const Place& place) {
  std::uint64_t begin = place.offset;
  std::uint64_t end = place.offset + place.nbytes;
  std::string window;
  const auto read = [&](std::uint64_t at, std::uint64_t n) {
    window.resize(n);
    source_->read_at(at, std::as_writable_bytes(std::span(window)));
    return std::string_view(window);
  };
  // A window may cut a blank: the next one begins where the last whole one ends.
  while (begin < end && !place.sparse) {
    const std::size_t n =
        leading_blanks(read(begin, std::min<std::uint64_t>(kStripWindowNbytes, end - begin)));
    begin += n;
    if (n + kMostBlankNbytes <= kStripWindowNbytes) {
      break;
    }
  }
  while (begin < end && !place.sparse) {
    const std::uint64_t size = std::min<std::uint64_t>(kStripWindowNbytes, end - begin);
    const std::size_t n = trailing_blanks(read(end - size, size));
    end -= n;
    if (n + kMostBlankNbytes <= kStripWindowNbytes) {
      break;
    }
  }
  part.any_stripped = part.any_stripped || end - begin != place.nbytes;
  part.stripped.append(begin, end - begin);
}

std::optional<TarIndexer::Place> TarIndexer::follow(const TarMember& member) {
  if (!link_targets_read_) {
    read_link_targets();
  }
  std::string name = link_name(member);
  for (int hop = 0; hop < kMostHops; ++hop) {
    const auto found = link_targets_.find(name);
    if (found == link_targets_.end()) {
      return std::nullopt;
    }
    if (found->second.next.empty()) {
      return found->second.place;
    }
    name = found->second.next;
  }
  return std::nullopt;
}

// Only archives with links pay for the names of all their members.
void TarIndexer::read_link_targets() {
  link_targets_read_ = true;
  TarWalk walk(*source_);
  TarMember member;
  try {
    while (walk.next(member)) {
      if (member.kind == TarMember::Kind::kFile) {
        link_targets_[normal_path(member.name)] = {
            {member.offset, member.nbytes, member.sparse, member.pieces}, ""};
      } else if (member.kind == TarMember::Kind::kHardLink ||
                 member.kind == TarMember::Kind::kSymbolicLink) {
        const std::string target = link_name(member);
        const std::string name = normal_path(member.name);
        if (target != name) {
          link_targets_[name] = {{}, target};
        }
      }
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) {
      throw;
    }
    // The walk that asked will come to it.
  }
}

void TarIndexer::leave_out(const TarMember& member, const std::string& why) {
  left_out_.add(corrupt_at(source_->name(), member.header_offset,
                           fmt::format("member '{}' {}", printable(member.name), why)));
}

void TarIndexer::say_left_out() {
  const auto tell = [&](const std::string& text) { warn(text); };
  left_out_.tell(tell);
  twice_.tell(tell);
}

TarIndex TarIndexer::finish() {
  index_.keys.shrink();
  for (TarPart& part : index_.parts) {
    if (part.records.empty() && part.places.size() < index_.size()) {
      for (std::uint64_t i = 0; i < part.places.size(); ++i) {
        part.records.push_back(i);
      }
    }
    part.records.shrink_to_fit();
    part.places.shrink();
    if (!part.any_stripped) {
      part.stripped = {};
    }
    part.stripped.shrink();
  }
  // Leaves out fields that only samples had which were left out themselves.
  std::erase_if(index_.parts, [](const TarPart& part) { return part.places.size() == 0; });
  return std::move(index_);
}

}  // namespace npyfs
