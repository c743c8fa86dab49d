// SPDX-License-Identifier: Apache-2.0

#include "fs/fuse_ops.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "fs/log.h"
#include "fs/npy_file.h"
#include "fs/passthrough.h"

namespace npyfs {

namespace {

// A mount is immutable: the kernel may keep names and attributes for ever (31 years).
constexpr double kForever = 1e9;
constexpr std::uint32_t kBlockNbytes = 128 * 1024;  // what cp and cat read at a time

MountedFs& fs_of(fuse_req_t req) { return *static_cast<MountedFs*>(fuse_req_userdata(req)); }

// What a reader is told. Of our own descriptors and of links to sources a reader would look for the
// fault in its own.
int errno_for_reader(const Error& error) {
  switch (const int answer = error.to_errno()) {
    case ELOOP:
    case EMFILE:
    case ENAMETOOLONG:
    case ENFILE:
      return EIO;
    default:
      return answer;
  }
}

// The errno for the exception being handled. Every error is logged here and nowhere else. Nothing
// may be thrown from here: the caller is C.
int report(MountedFs& fs, fuse_ino_t ino, const char* verb) noexcept {
  int answer = EIO;
  try {
    try {
      throw;
    } catch (const Error& error) {
      answer = errno_for_reader(error);
      fs.stats.count_error(error.kind());
      if (error.kind() == ErrorKind::kChanged) {
        fs.on_source_changed();
      }
      fs.damage.note(fs.tree.path(ino), error);
    } catch (const std::bad_alloc&) {
      answer = ENOMEM;
      fs.stats.count_other_error();
      throw;
    } catch (const std::exception& error) {
      fs.stats.count_other_error();
      log_error(fmt::format("{}: cannot {}: {}", fs.tree.path(ino), verb, error.what()));
    }
  } catch (...) {
    // Not even a line can be written; the reader still gets its answer.
  }
  return answer;
}

// Runs one operation and sees to it that it is answered once, whatever is thrown. The operation
// counts the request with the timer that it is given.
template <typename Operation>
void guard_timed(fuse_req_t req, fuse_ino_t ino, const char* verb, Operation&& operation) {
  MountedFs& fs = fs_of(req);
  RequestTimer timer(fs.stats);
  try {
    operation(fs, timer);
  } catch (...) {
    fuse_reply_err(req, report(fs, ino, verb));
  }
}

// The same for requests of one kind.
template <typename Operation>
void guard(fuse_req_t req, fuse_ino_t ino, RequestKind kind, const char* verb,
           Operation&& operation) {
  guard_timed(req, ino, verb, [&](MountedFs& fs, RequestTimer& timer) {
    timer.count(kind);
    operation(fs);
  });
}

template <typename Text>
void trace(Text&& text) {
  if (debug_logged()) {
    log_debug(text());
  }
}

timespec to_timespec(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t seconds = ns / kSecond - (ns % kSecond < 0 ? 1 : 0);
  return {static_cast<time_t>(seconds), static_cast<long>(ns - seconds * kSecond)};
}

struct stat stat_of(const MountedFs& fs, const Entry& entry) {
  struct stat status {};
  status.st_ino = entry.ino();
  status.st_uid = fs.owner_uid;
  status.st_gid = fs.owner_gid;
  status.st_blksize = kBlockNbytes;
  status.st_mtim = status.st_ctim = status.st_atim = to_timespec(entry.mtime_ns());
  if (const Directory* directory = entry.directory()) {
    status.st_mode = S_IFDIR | 0555;
    status.st_nlink = 2 + directory->count_directories();
  } else {
    status.st_mode = S_IFREG | 0444;
    status.st_nlink = 1;
    status.st_size = static_cast<off_t>(entry.file()->nbytes());
    status.st_blocks = (status.st_size + 511) / 512;
  }
  return status;
}

fuse_entry_param describe(const MountedFs& fs, const Entry& entry) {
  fuse_entry_param described{};
  described.ino = fs.tree.known_number(entry.ino());
  described.attr = stat_of(fs, entry);
  described.attr_timeout = described.entry_timeout = kForever;
  return described;
}

// What a question is about. The kernel only asks about numbers it got from us.
Entry find_entry(const MountedFs& fs, fuse_ino_t ino) {
  const auto entry = fs.tree.find(ino);
  if (!entry) {
    throw Error(ErrorKind::kNotFound, "no such inode");
  }
  return *entry;
}

// Of an entry that is a file: the kernel opens and reads nothing else.
const File& file_of(const Entry& entry) {
  if (entry.file() == nullptr) {
    throw Error(ErrorKind::kIo, "is a directory", EISDIR);
  }
  return *entry.file();
}

// Nothing may be thrown from here: the caller is C.
void forget(MountedFs& fs, Ino ino, std::uint64_t count) noexcept {
  try {
    for (const std::uint64_t serial : fs.tree.forget(ino, count)) {
      fs.cache.drop(serial);
    }
  } catch (const std::bad_alloc&) {
    // What the cache has of a view that has gone ages as all that is not asked for.
  }
}

// Numbers of one tree that the kernel is about to be told; it forgets them unless it was.
class Announced {
 public:
  Announced(MountedFs& fs, Ino ino) : fs_(fs), ino_(ino) {}
  ~Announced() {
    if (count_ > 0) {
      forget(fs_, ino_, count_);
    }
  }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;

  // Is counted as known already.
  void add() { ++count_; }
  // What libfuse returned for the reply.
  void note_sent(int result) { count_ = result == 0 ? 0 : count_; }

 private:
  MountedFs& fs_;
  Ino ino_;
  std::uint64_t count_ = 0;
};

void release(MountedFs& fs, fuse_ino_t ino, const fuse_file_info& file) {
  if (file.fh != 0) {
    fs.open_files.remove(file.fh);
  }
  fs.tree.note_close(ino);
}

// `backing`: what the kernel reads in its place; 0: nothing.
void reply_open(fuse_req_t req, MountedFs& fs, fuse_ino_t ino, const fuse_file_info& file,
                std::int32_t backing = 0) {
  fs.tree.note_open(ino);
  const int sent =
      backing > 0 ? reply_open_backed(req, file, backing) : fuse_reply_open(req, &file);
  if (sent != 0) {
    release(fs, ino, file);  // whoever asked has gone: it will not be released
  }
}

void on_init(void* userdata, fuse_conn_info* conn) {
  // Requests as large and as many as the kernel likes: a cold sequential reader is bound by their
  // number.
  conn->max_background = 64;
  conn->congestion_threshold = 48;
  if ((conn->capable & FUSE_CAP_SPLICE_WRITE) != 0) {
    // Replies are written from memory: a pipe in between only costs.
    conn->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_WRITE);
  }
  if (static_cast<const MountedFs*>(userdata)->wants_passthrough) {
    want_passthrough(conn);
  }
}

void on_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  guard(req, parent, RequestKind::kLookup, "look up", [&](MountedFs& fs) {
    trace([&] { return fmt::format("lookup {} in {}", name, fs.tree.path(parent)); });
    const auto ino = fs.tree.lookup(parent, name);
    if (!ino) {
      // Inode 0: the kernel remembers that there is no such name.
      fuse_entry_param none{};
      none.entry_timeout = kForever;
      fuse_reply_entry(req, &none);
      return;
    }
    Announced announced(fs, *ino);
    announced.add();
    const fuse_entry_param found = describe(fs, find_entry(fs, *ino));
    announced.note_sent(fuse_reply_entry(req, &found));
  });
}

void on_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* /*file*/) {
  guard(req, ino, RequestKind::kStat, "stat", [&](MountedFs& fs) {
    trace([&] { return fmt::format("getattr {}", fs.tree.path(ino)); });
    const struct stat status = stat_of(fs, find_entry(fs, ino));
    fuse_reply_attr(req, &status, kForever);
  });
}

// Whether the array of an entry is kept, or may be.
bool is_keepable(const MountedFs& fs, const Entry& entry) {
  return fs.kept != nullptr && fs.tree.is_plain(entry.ino()) && !why_not_kept(*entry.file());
}

// What the kernel reads in our place when the entry is opened under the number `ino`; 0: nothing.
// `kept` becomes the kept array, if there is one.
std::int32_t find_backing(MountedFs& fs, Ino ino, const Entry& entry,
                          std::shared_ptr<KeptArray>& kept) {
  if (!is_keepable(fs, entry)) {
    return fs.native->open(ino, *entry.file());
  }
  kept = fs.kept->open(entry.ino(), fs.tree.path(ino), *entry.file());
  if (kept == nullptr) {
    return fs.native->decline(ino);
  }
  const std::int32_t backing = fs.native->open(ino, *entry.file(), kept.get());
  if (backing == 0 && kept->is_complete()) {
    // It was opened in part before.
    fs.kept->note_complete(entry.ino());
  }
  return backing;
}

// The kept array that a file of a view may be read through.
std::shared_ptr<const KeptView> open_kept_view(const MountedFs& fs, const Entry& entry) {
  const auto plain = fs.kept != nullptr ? fs.tree.plain_entry(entry.ino()) : std::nullopt;
  if (!plain || plain->file() == nullptr || !is_keepable(fs, *plain)) {
    return nullptr;
  }
  const auto open = [&] {
    return fs.kept->open(plain->ino(), fs.tree.path(plain->ino()), *plain->file());
  };
  return make_kept_view(*entry.file(), *plain->file(), open, fs.fetcher);
}

void on_open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* file) {
  guard_timed(req, ino, "open", [&](MountedFs& fs, RequestTimer& timer) {
    trace([&] { return fmt::format("open {}", fs.tree.path(ino)); });
    const Entry entry = find_entry(fs, ino);
    if ((file->flags & O_ACCMODE) != O_RDONLY) {
      fuse_reply_err(req, EROFS);
      return;
    }
    const File& opened = file_of(entry);
    if (auto text = opened.text_now()) {
      // Made now, read once: neither size nor bytes may be kept by the kernel.
      file->direct_io = 1;
      file->fh =
          fs.open_files.add({std::make_shared<const std::string>(std::move(*text)), nullptr});
      reply_open(req, fs, ino, *file);
      return;
    }
    // What the kernel has cached of it is answered without asking us.
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    opened.check_unchanged(second);
    std::shared_ptr<KeptArray> kept;
    const std::int32_t backing = find_backing(fs, ino, entry, kept);
    auto view = open_kept_view(fs, entry);
    if (kept != nullptr || view != nullptr) {
      opened.check_parts(second);
    }
    if (backing > 0) {
      if (kept != nullptr) {
        kept->note_use();
      }
      // O_DIRECT reads come to us: file systems want places and sizes of their own for them, or
      // have none, and those of a mount are right wherever they are.
      file->direct_io = (file->flags & O_DIRECT) != 0 ? 1 : 0;
      if (kept != nullptr && file->direct_io) {
        file->fh = fs.open_files.add({nullptr, std::move(kept)});
      }
      timer.count(RequestKind::kOpenNative);
      reply_open(req, fs, ino, *file, backing);
      return;
    }
    timer.count(RequestKind::kOpen);
    file->keep_cache = 1;
    if (kept != nullptr || view != nullptr) {
      file->fh = fs.open_files.add({nullptr, std::move(kept), std::move(view)});
    }
    reply_open(req, fs, ino, *file);
  });
}

void on_release(fuse_req_t req, fuse_ino_t ino, fuse_file_info* file) {
  release(fs_of(req), ino, *file);
  fuse_reply_err(req, 0);
}

// How many of so many bytes from `begin` on a file of `end` bytes has.
std::size_t clip_nbytes(std::uint64_t begin, std::size_t nbytes, std::uint64_t end) {
  return std::min<std::uint64_t>(nbytes, end - std::min(begin, end));
}

// False where not all of it is kept.
bool reply_kept(fuse_req_t req, const KeptArray& kept, std::uint64_t begin, std::size_t nbytes,
                RequestTimer& timer) {
  thread_local Scratch scratch;
  scratch.clear();
  const std::size_t n = clip_nbytes(begin, nbytes, kept.nbytes());
  const std::span<std::byte> bytes(scratch.take(n), n);
  if (!kept.read(begin, bytes)) {
    return false;
  }
  timer.count(ReadWay::kKept, bytes.size());
  fuse_reply_buf(req, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return true;
}

// How what was asked of caches since `before` was answered.
ReadWay way_since(const BlockCache::Asked& before) {
  const BlockCache::Asked& now = BlockCache::asked_by_this_thread();
  if (now.decoded != before.decoded) {
    return ReadWay::kDecoded;
  }
  return now.all != before.all ? ReadWay::kCached : ReadWay::kMapped;
}

void on_read(fuse_req_t req, fuse_ino_t ino, std::size_t nbytes, off_t offset,
             fuse_file_info* file) {
  guard_timed(req, ino, "read", [&](MountedFs& fs, RequestTimer& timer) {
    trace([&] { return fmt::format("read {} {}+{}", fs.tree.path(ino), offset, nbytes); });
    const auto begin = static_cast<std::uint64_t>(offset);
    const OpenFile open_file = fs.open_files.find(file->fh);
    if (const auto& text = open_file.text) {
      const std::size_t at = std::min<std::uint64_t>(begin, text->size());
      fuse_reply_buf(req, text->data() + at, std::min(nbytes, text->size() - at));
      return;
    }
    thread_local Gathered gathered;
    const Entry entry = find_entry(fs, ino);
    const File& opened = file_of(entry);
    opened.require_unchanged();
    if (open_file.kept != nullptr) {
      if (open_file.kept->note_asked(nbytes) && !open_file.kept->is_complete()) {
        fs.on_much_read(entry.ino());
      }
      if (reply_kept(req, *open_file.kept, begin, nbytes, timer)) {
        return;
      }
    }
    const BlockCache::Asked before = BlockCache::asked_by_this_thread();
    const KeptView* const view = open_file.kept_view.get();
    bool is_kept = view != nullptr;
    if (view != nullptr && view->note_asked(nbytes)) {
      fs.on_much_read(fs.tree.plain_entry(entry.ino())->ino());
    }
    const auto plan_read = [&](ByteRange range, Plan& plan) {
      if (view != nullptr) {
        is_kept = view->plan_read(range, plan) && is_kept;
      } else {
        opened.plan_read(range, plan);
      }
    };
    fs.fetcher.read({begin, begin + nbytes}, std::cref(plan_read), gathered);
    // Once this is answered, the kernel may let go of the view that the file is of.
    const auto kept = gathered.chunk_uses().empty() ? nullptr : opened.weak_from_this().lock();
    const auto& parts = gathered.parts();
    timer.count(is_kept ? ReadWay::kKept : way_since(before),
                clip_nbytes(begin, nbytes, opened.nbytes()));
    fuse_reply_iov(req, parts.data(), static_cast<int>(parts.size()));
    if (open_file.kept != nullptr) {
      fs.kept->note_read(open_file.kept, begin, parts);
    } else if (view != nullptr) {
      view->note_read(*fs.kept, begin, parts);
    }
    try {
      if (kept != nullptr) {
        fs.read_ahead->note_read(kept, {begin, begin + nbytes}, gathered.chunk_uses(),
                                 (file->flags & O_DIRECT) == 0);
      }
      gathered.clear();
    } catch (const std::bad_alloc&) {
      // The request has been answered.
    }
  });
}

void on_opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* file) {
  file->keep_cache = 1;
  file->cache_readdir = 1;
  reply_open(req, fs_of(req), ino, *file);
}

// Lists a directory into one reply, from a cookie on: 1 is ".", 2 is "..", then the entries.
class Listing {
 public:
  Listing(fuse_req_t req, MountedFs& fs, Ino directory, std::size_t nbytes, bool with_attributes)
      : req_(req), fs_(fs), announced_(fs, directory), buffer_(nbytes), plus_(with_attributes) {}

  // An entry of the directory. False when the reply is full.
  bool add(const std::string& name, Ino ino, off_t next) {
    if (!append(name, find_entry(fs_, ino), next)) {
      return false;
    }
    if (plus_) {
      fs_.tree.remember(ino);
      announced_.add();
    }
    return true;
  }

  // "." and "..", which the kernel does not count.
  bool add_dots(const Entry& entry, off_t first) {
    return (first > 0 || append(".", entry, 1)) &&
           (first > 1 || append("..", find_entry(fs_, entry.parent()), 2));
  }

  void reply() { announced_.note_sent(fuse_reply_buf(req_, buffer_.data(), used_)); }

 private:
  bool append(const std::string& name, const Entry& entry, off_t next) {
    char* at = buffer_.data() + used_;
    const std::size_t left = buffer_.size() - used_;
    std::size_t needed = 0;
    if (plus_) {
      const fuse_entry_param described = describe(fs_, entry);
      needed = fuse_add_direntry_plus(req_, at, left, name.c_str(), &described, next);
    } else {
      struct stat status {};
      status.st_ino = entry.ino();
      status.st_mode = entry.directory() != nullptr ? S_IFDIR : S_IFREG;
      needed = fuse_add_direntry(req_, at, left, name.c_str(), &status, next);
    }
    if (needed > left) {
      return false;
    }
    used_ += needed;
    return true;
  }

  fuse_req_t req_;
  MountedFs& fs_;
  Announced announced_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  bool plus_;
};

void list(fuse_req_t req, fuse_ino_t ino, std::size_t nbytes, off_t offset, bool plus) {
  guard(req, ino, RequestKind::kList, "list", [&](MountedFs& fs) {
    trace([&] { return fmt::format("readdir {} from {}", fs.tree.path(ino), offset); });
    const Entry entry = find_entry(fs, ino);
    if (entry.directory() == nullptr) {
      fuse_reply_err(req, ENOTDIR);
      return;
    }
    Listing listing(req, fs, ino, nbytes, plus);
    if (listing.add_dots(entry, offset)) {
      entry.directory()->list(offset > 2 ? static_cast<std::uint64_t>(offset) - 2 : 0,
                              [&](std::uint64_t place, const std::string& name, Ino number) {
                                return listing.add(name, number, static_cast<off_t>(place) + 3);
                              });
    }
    listing.reply();
  });
}

void on_readdir(fuse_req_t req, fuse_ino_t ino, std::size_t nbytes, off_t offset,
                fuse_file_info* /*file*/) {
  list(req, ino, nbytes, offset, false);
}

void on_readdirplus(fuse_req_t req, fuse_ino_t ino, std::size_t nbytes, off_t offset,
                    fuse_file_info* /*file*/) {
  list(req, ino, nbytes, offset, true);
}

void on_statfs(fuse_req_t req, fuse_ino_t ino) {
  guard(req, ino, RequestKind::kStatfs, "statfs", [&](MountedFs& fs) {
    struct statvfs status {};
    status.f_bsize = status.f_frsize = 4096;
    status.f_blocks = fs.tree.total_nbytes() / 4096 + 1;
    status.f_files = fs.tree.total_files();
    status.f_namemax = 255;
    status.f_flag = ST_RDONLY;
    fuse_reply_statfs(req, &status);
  });
}

// The protocol of both calls: size 0 asks how much there is.
void reply_xattr(fuse_req_t req, std::string_view value, std::size_t nbytes) {
  if (nbytes == 0) {
    fuse_reply_xattr(req, value.size());
  } else if (nbytes < value.size()) {
    fuse_reply_err(req, ERANGE);
  } else {
    fuse_reply_buf(req, value.data(), value.size());
  }
}

// Of a directory: none.
Xattrs xattrs_of(const Entry& entry) {
  return entry.file() != nullptr ? entry.file()->xattrs() : Xattrs();
}

// How the file of the number is read; `unkept` where it is neither native nor kept.
std::string find_access(MountedFs& fs, fuse_ino_t ino, const Entry& entry,
                        const std::string& unkept) {
  const File& file = *entry.file();
  if (!is_keepable(fs, entry)) {
    return fs.native->is_native(ino, file) ? "native" : unkept;
  }
  const auto kept = fs.kept->find_complete(entry.ino(), fs.tree.path(ino), file);
  if (kept == nullptr) {
    return unkept;
  }
  return fs.native->is_native(ino, file, kept.get()) ? "native" : "kept";
}

void on_getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t nbytes) {
  guard(req, ino, RequestKind::kXattr, "read attributes", [&](MountedFs& fs) {
    const Entry entry = find_entry(fs, ino);
    for (const auto& [key, value] : xattrs_of(entry)) {
      if (key == name) {
        reply_xattr(req, key == kAccessXattr ? find_access(fs, ino, entry, value) : value, nbytes);
        return;
      }
    }
    fuse_reply_err(req, ENODATA);
  });
}

void on_listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t nbytes) {
  guard(req, ino, RequestKind::kXattr, "list attributes", [&](MountedFs& fs) {
    std::string names;
    for (const auto& [key, value] : xattrs_of(find_entry(fs, ino))) {
      names += key;
      names += '\0';
    }
    reply_xattr(req, names, nbytes);
  });
}

void on_forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t count) {
  forget(fs_of(req), ino, count);
  fuse_reply_none(req);
}

void on_forget_multi(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i) {
    forget(fs_of(req), forgets[i].ino, forgets[i].nlookup);
  }
  fuse_reply_none(req);
}

// The mount is read-only, so the kernel refuses writers itself; should it be remounted writable,
// we do.
template <typename... Rest>
void refuse(fuse_req_t req, fuse_ino_t /*ino*/, Rest... /*rest*/) {
  fuse_reply_err(req, EROFS);
}
void refuse_symlink(fuse_req_t req, const char* /*link*/, fuse_ino_t /*ino*/,
                    const char* /*name*/) {
  fuse_reply_err(req, EROFS);
}

fuse_lowlevel_ops make_ops() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  ops.lookup = on_lookup;
  ops.forget = on_forget;
  ops.forget_multi = on_forget_multi;
  ops.getattr = on_getattr;
  ops.open = on_open;
  ops.read = on_read;
  ops.release = on_release;
  ops.opendir = on_opendir;
  ops.releasedir = on_release;
  ops.readdir = on_readdir;
  ops.readdirplus = on_readdirplus;
  ops.statfs = on_statfs;
  ops.getxattr = on_getxattr;
  ops.listxattr = on_listxattr;
  ops.setattr = refuse;
  ops.mknod = refuse;
  ops.mkdir = refuse;
  ops.unlink = refuse;
  ops.rmdir = refuse;
  ops.symlink = refuse_symlink;
  ops.rename = refuse;
  ops.link = refuse;
  ops.write = refuse;
  ops.create = refuse;
  ops.setxattr = refuse;
  ops.removexattr = refuse;
  ops.fallocate = refuse;
  return ops;
}

}  // namespace

std::uint64_t OpenFiles::add(OpenFile file) {
  const MutexLock lock(mutex_);
  files_.emplace(++last_, std::move(file));
  return last_;
}

OpenFile OpenFiles::find(std::uint64_t handle) const {
  if (handle == 0) {
    return {};
  }
  const MutexLock lock(mutex_);
  const auto found = files_.find(handle);
  return found != files_.end() ? found->second : OpenFile();
}

void OpenFiles::remove(std::uint64_t handle) {
  const MutexLock lock(mutex_);
  files_.erase(handle);
}

const fuse_lowlevel_ops& fuse_ops() {
  static const fuse_lowlevel_ops ops = make_ops();
  return ops;
}

}  // namespace npyfs
