// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/crc.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/bytes/inflate.h"

namespace npyfs {

namespace {

// Records of the archive: their signatures and fixed sizes.
constexpr std::uint32_t kLocal = 0x04034b50;
constexpr std::uint32_t kEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::size_t kLocalNbytes = 30;
constexpr std::size_t kEntryNbytes = 46;
constexpr std::size_t kEndNbytes = 22;
constexpr std::size_t kEnd64Nbytes = 56;
constexpr std::size_t kLocator64Nbytes = 20;
constexpr std::size_t kMostComment = 0xffff;

constexpr std::uint16_t kEncryptedFlag = 1;
constexpr std::uint16_t kZip64Extra = 1;
// A field that is in the zip64 extra instead.
constexpr std::uint32_t kElsewhere = 0xffffffff;
// What deflate makes of a byte at most (zlib: "1032:1").
constexpr std::uint64_t kMostRatio = 1032;

std::uint16_t u16(const std::byte* at) { return load_le<std::uint16_t>(at); }
std::uint32_t u32(const std::byte* at) { return load_le<std::uint32_t>(at); }
std::uint64_t u64(const std::byte* at) { return load_le<std::uint64_t>(at); }

// What the records at the end of the archive say.
struct End {
  std::uint64_t directory_offset = 0;  // in the file
  std::uint64_t directory_nbytes = 0;
  std::uint64_t entries = 0;
  bool zip64 = false;
  // What stands before the archive in the file; offsets in it do not count that.
  std::uint64_t prefix_nbytes = 0;
};

// The end record, which a comment may follow.
std::uint64_t find_end_record(const ByteSource& source) {
  const std::uint64_t n = std::min<std::uint64_t>(source.nbytes(), kEndNbytes + kMostComment);
  std::vector<std::byte> tail(n);
  source.read_at(source.nbytes() - n, tail);
  for (std::size_t at = n < kEndNbytes ? 0 : n - kEndNbytes + 1; at-- > 0;) {
    if (u32(tail.data() + at) == kEnd && at + kEndNbytes + u16(tail.data() + at + 20) <= n) {
      return source.nbytes() - n + at;
    }
  }
  throw corrupt_at(source.name(), source.nbytes(),
                   "the file ends without the end record of a zip archive; it is cut, or it is no "
                   "zip archive");
}

template <std::size_t kNbytes>
std::array<std::byte, kNbytes> read_record(const ByteSource& source, std::uint64_t offset) {
  std::array<std::byte, kNbytes> record;
  source.read_at(offset, record);
  return record;
}

// The zip64 records, which stand right before the end record.
void read_end64(const ByteSource& source, std::uint64_t end_at, End& end) {
  if (end_at < kLocator64Nbytes + kEnd64Nbytes) {
    return;
  }
  const std::uint64_t locator_at = end_at - kLocator64Nbytes;
  const auto locator = read_record<kLocator64Nbytes>(source, locator_at);
  if (u32(locator.data()) != kLocator64) {
    return;
  }
  // Where the locator says, or, behind a prefix, where the record stands as everybody writes it.
  for (const std::uint64_t at : {u64(locator.data() + 8), locator_at - kEnd64Nbytes}) {
    if (!lies_within(at, kEnd64Nbytes, locator_at)) {
      continue;
    }
    const auto record = read_record<kEnd64Nbytes>(source, at);
    if (u32(record.data()) != kEnd64) {
      continue;
    }
    if (u32(record.data() + 16) != 0 || u32(record.data() + 20) != 0) {
      throw file_error(ErrorKind::kUnsupported, source.name(),
                       "it is one part of a zip archive in several, expected a whole one");
    }
    end.zip64 = true;
    end.entries = u64(record.data() + 32);
    end.directory_nbytes = u64(record.data() + 40);
    end.directory_offset = u64(record.data() + 48);
    if (end.directory_nbytes > at) {
      throw corrupt_at(source.name(), at + 40,
                       fmt::format("the directory's size is {}, expected at most the {} bytes "
                                   "before this record",
                                   end.directory_nbytes, at));
    }
    const std::uint64_t begin = at - end.directory_nbytes;
    if (end.directory_offset > begin) {
      throw corrupt_at(source.name(), at + 48,
                       fmt::format("the directory's offset is {}, expected at most {}",
                                   end.directory_offset, begin));
    }
    end.prefix_nbytes = begin - end.directory_offset;
    end.directory_offset = begin;
    return;
  }
  throw corrupt_at(source.name(), locator_at + 8,
                   fmt::format("the zip64 end record is not at {}, where the locator has it",
                               u64(locator.data() + 8)));
}

End read_end(const ByteSource& source) {
  const std::uint64_t at = find_end_record(source);
  const auto record = read_record<kEndNbytes>(source, at);
  End end;
  read_end64(source, at, end);
  if (end.zip64) {
    return end;
  }
  if (u16(record.data() + 4) != 0 || u16(record.data() + 6) != 0) {
    throw file_error(ErrorKind::kUnsupported, source.name(),
                     "it is one part of a zip archive in several, expected a whole one");
  }
  end.entries = u16(record.data() + 10);
  end.directory_nbytes = u32(record.data() + 12);
  end.directory_offset = u32(record.data() + 16);
  if (end.directory_nbytes > at || end.directory_offset > at - end.directory_nbytes) {
    throw corrupt_at(source.name(), at + 12,
                     fmt::format("the directory is {} bytes at {}, expected it before this record",
                                 end.directory_nbytes, end.directory_offset));
  }
  end.prefix_nbytes = at - end.directory_nbytes - end.directory_offset;
  end.directory_offset += end.prefix_nbytes;
  return end;
}

// A flipped bit in the directory gives a member another name; the one in its header is still right.
Error wrong_name(const ByteSource& archive, const ZipMember& member, std::size_t name_nbytes) {
  const std::uint64_t offset = member.header_offset + kLocalNbytes;
  std::string name(std::min<std::uint64_t>(name_nbytes, archive.nbytes() - offset), '\0');
  archive.read_at(offset, std::as_writable_bytes(std::span(name)));
  return corrupt_at(
      archive.name(), offset,
      fmt::format("the name of '{}' in its own header is '{}', expected the same as in "
                  "the archive's directory; the file is damaged: copy it again",
                  printable(member.name), printable(name)));
}

}  // namespace

// Reads the entries one by one.
class ZipDirectory::Parser {
 public:
  Parser(const ByteSource& source, const End& end)
      : source_(source),
        end_(end),
        window_(source),
        at_(end.directory_offset),
        limit_(end.directory_offset + end.directory_nbytes) {}

  void read_all(ZipDirectory& directory) {
    while (at_ < limit_) {
      read_entry(directory);
    }
    // Writers without zip64 count modulo 65536.
    const std::uint64_t counted = end_.zip64 ? directory.size() : directory.size() & 0xffff;
    if (counted != end_.entries) {
      throw corrupt_at(source_.name(), limit_,
                       fmt::format("the directory has {} entries, expected the {} that the end "
                                   "record counts",
                                   directory.size(), end_.entries));
    }
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& text) const {
    throw corrupt_at(source_.name(), offset, text);
  }

  void require_left(std::uint64_t nbytes, const char* what) const {
    if (nbytes > limit_ - at_) {
      fail(at_, fmt::format("{} takes {} bytes, expected at most the {} that are left of the "
                            "directory",
                            what, nbytes, limit_ - at_));
    }
  }

  void read_entry(ZipDirectory& directory) {
    require_left(kEntryNbytes, "a directory entry");
    std::span<const std::byte> fixed = window_.at(at_, kEntryNbytes);
    if (u32(fixed.data()) != kEntry) {
      fail(at_, fmt::format("the signature of a directory entry is {:#010x}, expected {:#010x}",
                            u32(fixed.data()), kEntry));
    }
    const std::size_t name_nbytes = u16(fixed.data() + 28);
    const std::size_t extra_nbytes = u16(fixed.data() + 30);
    const std::size_t nbytes = kEntryNbytes + name_nbytes + extra_nbytes + u16(fixed.data() + 32);
    require_left(nbytes, "a directory entry");
    const std::byte* entry = window_.at(at_, kEntryNbytes + name_nbytes + extra_nbytes).data();

    Place place{};
    place.entry_offset = at_;
    place.encrypted = (u16(entry + 8) & kEncryptedFlag) != 0;
    place.method = u16(entry + 10);
    place.crc32 = u32(entry + 16);
    place.stored_nbytes = u32(entry + 20);
    place.nbytes = u32(entry + 24);
    place.header_offset = u32(entry + 42);
    read_zip64({entry + kEntryNbytes + name_nbytes, extra_nbytes}, place);
    check(place);
    directory.places_.push_back(place);
    directory.names_.append({reinterpret_cast<const char*>(entry + kEntryNbytes), name_nbytes});
    at_ += nbytes;
  }

  // The fields that did not fit, in this order.
  void read_zip64(std::span<const std::byte> extra, Place& place) const {
    while (extra.size() >= 4) {
      const std::uint16_t id = u16(extra.data());
      const std::size_t nbytes = u16(extra.data() + 2);
      extra = extra.subspan(4);
      if (nbytes > extra.size()) {
        return;  // what is no field at all is nobody's
      }
      if (id == kZip64Extra) {
        std::span<const std::byte> fields = extra.first(nbytes);
        for (std::uint64_t* field : {&place.nbytes, &place.stored_nbytes, &place.header_offset}) {
          if (*field == kElsewhere && fields.size() >= 8) {
            *field = u64(fields.data());
            fields = fields.subspan(8);
          }
        }
      }
      extra = extra.subspan(nbytes);
    }
  }

  void check(Place& place) const {
    const auto offset = checked_add(place.header_offset, end_.prefix_nbytes);
    if (!offset || !lies_within(*offset, kLocalNbytes, end_.directory_offset) ||
        place.stored_nbytes > end_.directory_offset - *offset - kLocalNbytes) {
      fail(at_ + 42, fmt::format("a member of {} bytes has its header at {}, expected it before "
                                 "the directory at {}",
                                 place.stored_nbytes, place.header_offset, end_.directory_offset));
    }
    place.header_offset = *offset;
    if (place.method == ZipMember::kStored && !place.encrypted &&
        place.nbytes != place.stored_nbytes) {
      fail(at_ + 20, fmt::format("a stored member has {} bytes that decode to {}, expected equal "
                                 "sizes",
                                 place.stored_nbytes, place.nbytes));
    }
  }

  const ByteSource& source_;
  const End& end_;
  WindowReader window_;
  std::uint64_t at_;
  std::uint64_t limit_;
};

bool is_zip(std::span<const std::byte> head) {
  return head.size() >= 4 && (u32(head.data()) == kLocal || u32(head.data()) == kEnd);
}

ZipDirectory::ZipDirectory(const ByteSource& source) {
  const End end = read_end(source);
  Parser(source, end).read_all(*this);
  places_.shrink_to_fit();
  names_.shrink();
  by_name_.resize(places_.size());
  for (std::uint32_t i = 0; i < by_name_.size(); ++i) {
    by_name_[i] = i;
  }
  // The last of equal names first, so that unique keeps it.
  std::sort(by_name_.begin(), by_name_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return names_[a] != names_[b] ? names_[a] < names_[b] : a > b;
  });
  by_name_.erase(
      std::unique(by_name_.begin(), by_name_.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return names_[a] == names_[b]; }),
      by_name_.end());
}

ZipMember ZipDirectory::operator[](std::uint64_t index) const {
  const Place& place = places_[index];
  ZipMember member;
  member.name = names_[index];
  member.header_offset = place.header_offset;
  member.stored_nbytes = place.stored_nbytes;
  member.nbytes = place.nbytes;
  member.crc32 = place.crc32;
  member.crc_offset = place.entry_offset + 16;
  member.method = place.method;
  member.encrypted = place.encrypted;
  return member;
}

std::optional<std::uint64_t> ZipDirectory::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](std::uint32_t index, std::string_view wanted) { return names_[index] < wanted; });
  if (found == by_name_.end() || names_[*found] != name) {
    return std::nullopt;
  }
  return *found;
}

std::uint64_t zip_data_offset(const ByteSource& archive, const ZipMember& member) {
  // As long as the name in the directory, which stands behind all members.
  std::vector<std::byte> header(kLocalNbytes + member.name.size());
  archive.read_at(member.header_offset, header);
  if (u32(header.data()) != kLocal) {
    throw corrupt_at(
        archive.name(), member.header_offset,
        fmt::format("the signature of the header of '{}' is {:#010x}, expected {:#010x}",
                    printable(member.name), u32(header.data()), kLocal));
  }
  const std::size_t name_nbytes = u16(header.data() + 26);
  const auto name = std::span(header).subspan(kLocalNbytes);
  if (name_nbytes != name.size() ||
      std::memcmp(name.data(), member.name.data(), name.size()) != 0) {
    throw wrong_name(archive, member, name_nbytes);
  }
  const std::uint64_t offset =
      member.header_offset + kLocalNbytes + name_nbytes + u16(header.data() + 28);
  if (!lies_within(offset, member.stored_nbytes, archive.nbytes())) {
    throw corrupt_at(archive.name(), member.header_offset + 26,
                     fmt::format("'{}' has {} bytes from {} on, expected them within the archive",
                                 printable(member.name), member.stored_nbytes, offset));
  }
  return offset;
}

void require_plausible(const ByteSource& archive, const ZipMember& member) {
  if (member.nbytes / kMostRatio > member.stored_nbytes) {
    throw corrupt_at(
        archive.name(), member.crc_offset + 8,
        fmt::format("'{}' has {} bytes that decode to {}, expected at most {} times as "
                    "many",
                    printable(member.name), member.stored_nbytes, member.nbytes, kMostRatio));
  }
}

void read_zip_member(const ByteSource& archive, const ZipMember& member, std::span<std::byte> out) {
  if (!member.readable()) {
    throw file_error(
        ErrorKind::kUnsupported, archive.name(),
        fmt::format("{} is {}, expected a stored or deflated member", printable(member.name),
                    member.encrypted ? "encrypted"
                                     : fmt::format("compressed by method {}", member.method)));
  }
  require_plausible(archive, member);
  const std::uint64_t offset = zip_data_offset(archive, member);
  if (member.method == ZipMember::kStored) {
    archive.read_at(offset, out);
  } else {
    inflate_raw(archive, {offset, offset + member.stored_nbytes}, out);
  }
  if (const std::uint32_t found = crc32(out); found != member.crc32) {
    throw corrupt_at(archive.name(), offset,
                     fmt::format("the CRC-32 of '{}' is {:#010x}, expected {:#010x}; the file is "
                                 "damaged",
                                 printable(member.name), found, member.crc32));
  }
}

}  // namespace npyfs
