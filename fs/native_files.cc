// SPDX-License-Identifier: Apache-2.0

#include "fs/native_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "formats/bytes/error.h"
#include "fs/log.h"

namespace npyfs {

namespace {

std::string why_of(std::int32_t refused) {
  switch (refused) {
    case EPERM:
      return "the kernel refuses it without CAP_SYS_ADMIN of the whole machine";
    case ELOOP:
      return "it lies on a file system that lies on another one";
    default:
      return fmt::format("the kernel refuses it: {}", std::strerror(refused));
  }
}

// As File::open_backing(): nothing as long as it is in part.
std::optional<int> open_complete(const KeptArray& kept) {
  const int fd = kept.complete_descriptor();
  return fd >= 0 ? std::optional(::fcntl(fd, F_DUPFD_CLOEXEC, 0)) : std::nullopt;
}

}  // namespace

std::int32_t NativeFiles::open(Ino ino, const File& file, const KeptArray* kept) {
  const std::int32_t backing = find(ino, file, kept);
  return backing == 0 && kept != nullptr ? decline(ino) : backing;
}

bool NativeFiles::is_native(Ino ino, const File& file, const KeptArray* kept) {
  return find(ino, file, kept) > 0;
}

// Not under the lock: looking for the backing file may wait for a disk. Of two who do so the second
// one's is let go of.
std::int32_t NativeFiles::find(Ino ino, const File& file, const KeptArray* kept) {
  if (const auto known = decided(ino)) {
    return *known;
  }
  std::optional<int> fd;
  try {
    fd = kept != nullptr ? open_complete(*kept) : file.open_backing();
  } catch (const std::exception& error) {
    note_refusal(ino, file, error.what());
    return decide(ino, 0);
  }
  if (!fd) {
    return 0;
  }
  if (*fd < 0) {
    return decide(ino, 0);
  }
  const std::int32_t backing = ask_kernel(ino, file, *fd);
  ::close(*fd);
  return decide(ino, backing);
}

std::optional<std::int32_t> NativeFiles::decided(Ino ino) {
  const MutexLock lock(mutex_);
  const auto known = decided_.find(ino);
  return known != decided_.end() ? std::optional(known->second) : std::nullopt;
}

std::optional<NativeFiles::Known> NativeFiles::find_known(Ino ino) const {
  const MutexLock lock(mutex_);
  const auto known = decided_.find(ino);
  if (known == decided_.end()) {
    return std::nullopt;
  }
  const auto refused = refused_.find(ino);
  return Known{known->second > 0, refused != refused_.end() ? refused->second : ""};
}

std::int32_t NativeFiles::decide(Ino ino, std::int32_t backing) {
  std::int32_t first = 0;
  {
    const MutexLock lock(mutex_);
    first = decided_.emplace(ino, backing).first->second;
  }
  if (backing > 0 && first != backing) {
    kernel_.close(backing);
  }
  return first;
}

// The number of the backing file; 0: it will not read it.
std::int32_t NativeFiles::ask_kernel(Ino ino, const File& file, int fd) {
  if (refusal_) {
    if (refusal_->is_wanted) {
      note_refusal(ino, file, refusal_->why);
    }
    return 0;
  }
  const std::int32_t backing = kernel_.open(fd);
  if (backing > 0) {
    return backing;
  }
  note_refusal(ino, file, why_of(-backing));
  return 0;
}

void NativeFiles::note_refusal(Ino ino, const File& file, const std::string& why) {
  {
    const MutexLock lock(mutex_);
    refused_.emplace(ino, why);
    if (std::exchange(told_, true)) {
      return;
    }
  }
  const std::string name = file.sources().empty() ? "a file" : file.sources().front()->name();
  log_warning(
      fmt::format("{}: npyfs reads it in the kernel's place: {}; told once", printable(name), why));
}

}  // namespace npyfs
