// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/byte_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/error.h"
#include "formats/bytes/local_storage.h"

namespace npyfs {

namespace {

// Windows of WindowReader: for near things so many times their distance, else a probe.
constexpr std::size_t kWindowDistances = 16;
constexpr std::size_t kProbesOfGap = 8;

std::atomic<std::uint64_t> changed_sources{0};

thread_local SourceWatch* innermost_watch = nullptr;
thread_local OpenedFiles* innermost_opened = nullptr;

std::uint64_t nbytes_of(std::span<const iovec> parts) {
  std::uint64_t nbytes = 0;
  for (const iovec& part : parts) {
    nbytes += part.iov_len;
  }
  return nbytes;
}

}  // namespace

void ByteSource::require_within(std::uint64_t offset, std::uint64_t nbytes) const {
  if (!lies_within(offset, nbytes, nbytes_)) {
    throw corrupt_at(name_, offset,
                     fmt::format("{} bytes are needed, {} are there; the file is cut short", nbytes,
                                 offset < nbytes_ ? nbytes_ - offset : 0));
  }
}

void ByteSource::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  require_within(offset, out.size());
  if (out.empty()) {
    return;
  }
  note_read();
  do_read(offset, out);
}

void ByteSource::read_ranges(std::span<const WantedRange> ranges) const {
  for (const WantedRange& range : ranges) {
    require_within(range.offset, range.out.size());
  }
  if (!ranges.empty()) {
    note_read();
    do_read_ranges(ranges);
  }
}

void ByteSource::note_read() const {
  if (SourceWatch* watch = innermost_watch;
      watch != nullptr && (watch->read_.empty() || watch->read_.back() != this)) {
    watch->read_.push_back(this);
  }
}

void ByteSource::read_parts_at(std::uint64_t offset, std::span<const iovec> parts) const {
  require_within(offset, nbytes_of(parts));
  note_read();
  do_read_parts(offset, parts);
}

int ByteSource::open_again() const {
  throw file_error(ErrorKind::kUnsupported, name_,
                   "it is part of another file, expected a file of its own");
}

std::string read_whole(const ByteSource& source, std::uint64_t most_nbytes) {
  if (source.nbytes() > most_nbytes) {
    throw file_error(
        ErrorKind::kTooLarge, source.name(),
        fmt::format("it has {} bytes, expected at most {}", source.nbytes(), most_nbytes));
  }
  std::string bytes(source.nbytes(), '\0');
  source.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

OpenedFiles::OpenedFiles() : outer_(innermost_opened) { innermost_opened = this; }

OpenedFiles::~OpenedFiles() { innermost_opened = outer_; }

void OpenedFiles::note(const Identity& identity, const std::string& path) {
  if (innermost_opened != nullptr) {
    innermost_opened->files_.push_back({identity, std::hash<std::string>()(path)});
  }
}

SourceWatch::SourceWatch() : outer_(innermost_watch) { innermost_watch = this; }

SourceWatch::~SourceWatch() { innermost_watch = outer_; }

void SourceWatch::check_unchanged() const {
  const ByteSource* last = nullptr;
  for (const ByteSource* source : read_) {
    if (source != last) {
      source->check_unchanged();
    }
    last = source;
  }
}

void require_unchanged(const std::vector<SourcePtr>& sources) {
  if (count_changed_sources() == 0) {
    return;
  }
  for (const SourcePtr& source : sources) {
    if (source->changed()) {
      source->check_unchanged();
    }
  }
}

std::int64_t newest_mtime_ns(const std::vector<SourcePtr>& sources) {
  std::int64_t newest = 0;
  for (const SourcePtr& source : sources) {
    newest = std::max(newest, source->mtime_ns());
  }
  return newest;
}

std::uint64_t count_changed_sources() { return changed_sources.load(std::memory_order_acquire); }

void ChangeMark::set() const {
  if (!set_.exchange(true, std::memory_order_relaxed)) {
    changed_sources.fetch_add(1, std::memory_order_release);
  }
}

std::shared_ptr<FileSource> FileSource::open(const std::string& path, const std::string& name,
                                             const Confinement& confinement) {
  // The daemon changes its working directory.
  auto file = RegularFile::open(absolute_path_of(path), name, confinement);
  if (!file) {
    throw system_error(name, "open", errno);
  }
  OpenedFiles::note(file->identity(), file->path());
  return std::shared_ptr<FileSource>(new FileSource(name, std::move(file)));
}

FileSource::FileSource(std::string name, std::unique_ptr<const RegularFile> file)
    : ByteSource(std::move(name), file->nbytes(), file->identity().mtime_ns),
      file_(std::move(file)) {}

// Calls `use`, and remembers if it finds that the file has changed.
template <typename Use>
auto FileSource::watch(const Use& use) const {
  try {
    return use();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kChanged) {
      changed_.set();
    }
    throw;
  }
}

void FileSource::check_unchanged() const {
  if (changed()) {
    throw changed_error(name(), "has changed");
  }
  watch([&] { file_->require_unchanged(); });
}

void FileSource::do_read(std::uint64_t offset, std::span<std::byte> out) const {
  watch([&] {
    if (file_->read(offset, out) < out.size()) {
      throw changed_error(name(), "has become shorter");
    }
  });
}

int FileSource::open_again() const {
  return watch([&] { return file_->open_again(); });
}

void FileSource::do_read_parts(std::uint64_t offset, std::span<const iovec> parts) const {
  // Short reads and errors are rare: do_read knows what to do.
  if (!watch([&] { return file_->read_parts(offset, parts); })) {
    ByteSource::do_read_parts(offset, parts);
  }
}

void ByteSource::do_read_parts(std::uint64_t offset, std::span<const iovec> parts) const {
  const std::uint64_t nbytes = nbytes_of(parts);
  if (parts.size() == 1) {
    do_read(offset, {static_cast<std::byte*>(parts[0].iov_base), nbytes});
    return;
  }
  const auto all = std::make_unique_for_overwrite<std::byte[]>(nbytes);
  do_read(offset, {all.get(), nbytes});
  const std::byte* from = all.get();
  for (const iovec& part : parts) {
    std::memcpy(part.iov_base, from, part.iov_len);
    from += part.iov_len;
  }
}

void ByteSource::do_read_ranges(std::span<const WantedRange> ranges) const {
  read_neighbours(ranges, cost(), [this](std::uint64_t offset, std::span<const iovec> parts) {
    do_read_parts(offset, parts);
  });
}

void read_neighbours(std::span<const WantedRange> ranges, const ReadCost& cost,
                     const std::function<void(std::uint64_t, std::span<const iovec>)>& read_parts) {
  const std::uint64_t gap_nbytes = cost.gap_nbytes();
  // On the stack: every read of gathered records comes here, also from within another one.
  iovec parts[IOV_MAX];
  constexpr std::size_t kUsualGapNbytes = 4096;
  std::byte small[kUsualGapNbytes];
  std::unique_ptr<std::byte[]> large;
  if (gap_nbytes > kUsualGapNbytes) {
    large = std::make_unique_for_overwrite<std::byte[]>(gap_nbytes);
  }
  std::byte* const unwanted = large != nullptr ? large.get() : small;
  for (std::size_t i = 0; i < ranges.size();) {
    std::size_t count = 0;
    parts[count++] = {ranges[i].out.data(), ranges[i].out.size()};
    const std::uint64_t begin = ranges[i].offset;
    std::uint64_t end = begin + ranges[i].out.size();
    // Each range may take two parts, and preadv takes IOV_MAX.
    for (++i; i < ranges.size() && count + 2 <= IOV_MAX; ++i) {
      const WantedRange& range = ranges[i];
      const std::uint64_t gap = range.offset - end;  // too much, too, for one that lies before
      if (gap > gap_nbytes || range.offset + range.out.size() - begin > cost.most_nbytes()) {
        break;
      }
      if (gap > 0) {
        parts[count++] = {unwanted, gap};
      }
      parts[count++] = {range.out.data(), range.out.size()};
      end = range.offset + range.out.size();
    }
    read_parts(begin, {parts, count});
  }
}

MemorySource::MemorySource(std::string name, std::vector<std::byte> bytes)
    : ByteSource(std::move(name), bytes.size(), 0), bytes_(std::move(bytes)) {}

void MemorySource::do_read(std::uint64_t offset, std::span<std::byte> out) const {
  std::memcpy(out.data(), bytes_.data() + offset, out.size());
}

std::size_t WindowReader::near_nbytes_of(const ByteSource& source) {
  return source.cost().best_nbytes / kWindowDistances;
}

std::span<const std::byte> WindowReader::at(std::uint64_t offset, std::size_t nbytes) {
  return at_least(offset, nbytes).first(nbytes);
}

std::span<const std::byte> WindowReader::at_least(std::uint64_t offset, std::size_t nbytes) {
  const bool inside =
      offset >= window_offset_ && lies_within(offset - window_offset_, nbytes, window_.size());
  if (!inside) {
    const bool near = offset >= last_offset_ && offset - last_offset_ <= near_nbytes_;
    const std::size_t wanted =
        std::max<std::size_t>(nbytes, near ? kWindowDistances * near_nbytes_
                                           : source_.cost().gap_nbytes() / kProbesOfGap);
    source_.require_within(offset, nbytes);
    window_.resize(std::min<std::uint64_t>(wanted, source_.nbytes() - offset));
    window_offset_ = offset;
    try {
      source_.read_at(offset, window_);
    } catch (...) {
      window_.clear();
      throw;
    }
  }
  last_offset_ = offset;
  return std::span<const std::byte>(window_).subspan(offset - window_offset_);
}

}  // namespace npyfs
