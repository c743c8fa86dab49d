// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/error.h"

namespace npyfs {

namespace {

constexpr std::size_t kBufferNbytes = std::size_t{1} << 20;

// Not every file system makes files without a name.
int open_named(const std::string& directory) {
  std::string path = directory + "/npyfs-spool-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) {
    ::unlink(path.c_str());
  }
  return fd;
}

class SpooledSource : public ByteSource {
 public:
  SpooledSource(std::shared_ptr<const Spool> spool, SourcePtr base, std::uint64_t begin,
                std::uint64_t nbytes)
      : ByteSource(base->name(), nbytes, base->mtime_ns()),
        spool_(std::move(spool)),
        base_(std::move(base)),
        begin_(begin) {}

  Identity identity() const override { return base_->identity(); }
  std::string path() const override { return base_->path(); }
  void check_unchanged() const override { base_->check_unchanged(); }
  bool changed() const override { return base_->changed(); }
  std::string access() const override { return "kept decoded in " + spool_->directory(); }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    spool_->read(begin_ + offset, out);
  }

  std::shared_ptr<const Spool> spool_;
  SourcePtr base_;
  std::uint64_t begin_;
};

}  // namespace

std::shared_ptr<Spool> Spool::create(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    throw system_error(directory, "make the directory", errno);
  }
  int fd = open_descriptor(
      [&] { return ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    fd = open_named(directory);
  }
  if (fd < 0) {
    throw system_error(directory, "make a file in", errno);
  }
  return std::shared_ptr<Spool>(new Spool(directory, fd));
}

Spool::~Spool() { ::close(fd_); }

void Spool::begin() {
  buffer_.clear();
  if (end_ > begin_ && ::ftruncate(fd_, static_cast<off_t>(begin_)) != 0) {
    throw system_error(directory_, "shorten a file in", errno);
  }
  end_ = begin_;
}

void Spool::drop() noexcept {
  buffer_ = {};
  // Where it fails begin() tries again, and says so.
  if (end_ > begin_ && ::ftruncate(fd_, static_cast<off_t>(begin_)) == 0) {
    end_ = begin_;
  }
}

void Spool::append(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kBufferNbytes) {
    flush();
  }
}

void Spool::flush() {
  std::span<const std::byte> rest(buffer_);
  while (!rest.empty()) {
    const ssize_t n = ::pwrite(fd_, rest.data(), rest.size(), static_cast<off_t>(end_));
    if (n < 0 && errno != EINTR) {
      throw system_error(directory_, "keep decoded data in", errno);
    }
    rest = rest.subspan(n > 0 ? static_cast<std::size_t>(n) : 0);
    end_ += n > 0 ? static_cast<std::uint64_t>(n) : 0;
  }
  buffer_.clear();
}

SourcePtr Spool::finish(const std::shared_ptr<Spool>& spool, SourcePtr base) {
  spool->flush();
  spool->buffer_.shrink_to_fit();
  const std::uint64_t begin = spool->begin_;
  spool->begin_ = spool->end_;
  return std::make_shared<SpooledSource>(spool, std::move(base), begin, spool->end_ - begin);
}

void Spool::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n == 0 || (n < 0 && errno != EINTR)) {
      throw system_error(directory_, "read decoded data in", n == 0 ? EIO : errno);
    }
    offset += n > 0 ? static_cast<std::uint64_t>(n) : 0;
    out = out.subspan(n > 0 ? static_cast<std::size_t>(n) : 0);
  }
}

}  // namespace npyfs
