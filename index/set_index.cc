// SPDX-License-Identifier: Apache-2.0

#include "index/set_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/bytes/crc.h"
#include "formats/bytes/error.h"
#include "kept/kept_key.h"

namespace npyfs {

namespace {

namespace stdfs = std::filesystem;

// Less is read again as fast as it is looked up.
constexpr std::uint64_t kLeastSourceNbytes = std::uint64_t{4} << 20;
// So much of a disk stays free.
constexpr std::uint64_t kLeastFreePart = 20;
constexpr std::chrono::hours kUnusedFor{24 * 90};
constexpr std::chrono::hours kAbandonedFor{24};

constexpr const char* kIndexEnding = ".index";
constexpr const char* kStampEnding = ".stamp";
constexpr const char* kNewEnding = ".new";

std::int64_t to_ns(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// What a file was when it had been written and synced.
struct Stamp {
  std::array<char, 8> magic = {'N', 'P', 'Y', 'F', 'S', 'T', 'M', 'P'};
  std::uint64_t nbytes = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::uint64_t crc = 0;  // CRC-32C of what is before it
};

Stamp stamp_of(const struct stat& status) {
  Stamp stamp;
  stamp.nbytes = static_cast<std::uint64_t>(status.st_size);
  stamp.inode = status.st_ino;
  stamp.mtime_ns = to_ns(status.st_mtim);
  stamp.ctime_ns = to_ns(status.st_ctim);
  stamp.crc = crc32c(std::as_bytes(std::span(&stamp, 1)).first(offsetof(Stamp, crc)));
  return stamp;
}

// Whether a file was written to so shortly before it was opened that its mtime may have stayed the
// same when it was written to again (file systems count in ticks of the clock, old ones in
// seconds).
bool is_too_new(std::int64_t mtime_ns, std::chrono::system_clock::time_point opened_at) {
  using namespace std::chrono;
  const auto age = opened_at.time_since_epoch() - nanoseconds(mtime_ns);
  return age < (mtime_ns % 1'000'000'000 == 0 ? seconds(2) : milliseconds(100));
}

std::string folder_of(const std::string& path) {
  std::error_code error;
  const stdfs::path absolute = stdfs::absolute(path, error);
  if (error) {
    throw system_error(path, "find", error.value());
  }
  return absolute.lexically_normal().parent_path().string();
}

// An empty file "BEGINNING.PID.N.new".
DiskFile make_new_file(const std::string& beginning, mode_t mode) {
  for (int number = 0;; ++number) {
    const std::string name = fmt::format("{}.{}.{}{}", beginning, ::getpid(), number, kNewEnding);
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) {
      return {fd, name};
    }
    if (errno != EEXIST) {
      throw system_error(name, "make", errno);
    }
  }
}

// `npyfs index -o` replaces nothing but indexes.
void require_replaceable(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return;
  }
  if (S_ISREG(status.st_mode)) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && IndexFile::open(DiskFile(fd, path), IndexFile::Trust::kForeign) != nullptr) {
      return;
    }
  }
  throw file_error(ErrorKind::kUsage, path,
                   "there is something that is no index of this version, expected nothing or one "
                   "to be replaced; name another FILE, or remove it");
}

// What it says of places in sources is believed: whoever can write to it could lead readers astray.
void require_trustworthy(const DiskFile& file) {
  const struct stat status = file.look();
  const bool is_ours = status.st_uid == ::geteuid() || status.st_uid == 0;
  if (!is_ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw file_error(ErrorKind::kUnsupported, file.name(),
                     "another user can write to it, expected an index of one's own or root's; if "
                     "it can be trusted, copy it beside the data and name the copy");
  }
}

// "HEX.stamp", of a name that indexes have, with ending `ending`; else empty.
std::string_view stem_of(std::string_view name, std::string_view ending) {
  const std::string_view stem = name.substr(0, KeptKey::kNameLength);
  return is_kept_name(stem) && name.substr(stem.size()) == ending ? stem : std::string_view();
}

// "HEX.PID.N.new".
bool is_unfinished(std::string_view name) {
  const std::string_view rest = name.substr(std::min(name.size(), KeptKey::kNameLength));
  return is_kept_name(name.substr(0, KeptKey::kNameLength)) && rest.ends_with(kNewEnding) &&
         rest.find_first_not_of(".0123456789new") == std::string_view::npos;
}

}  // namespace

std::string default_index_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/npyfs";
  }
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/npyfs" : "";
}

std::shared_ptr<SetIndex> SetIndex::open(SetIndexOptions options) {
  const std::shared_ptr<SetIndex> index(new SetIndex(std::move(options)));
  const SetIndexOptions& given = index->options_;
  if (!given.made_ahead.empty()) {
    const int fd = ::open(given.made_ahead.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      throw system_error(given.made_ahead, "open", errno);
    }
    DiskFile file(fd, given.made_ahead);
    require_trustworthy(file);
    index->made_ahead_ = IndexFile::open(std::move(file), IndexFile::Trust::kForeign);
    if (index->made_ahead_ == nullptr) {
      throw file_error(ErrorKind::kCorrupt, given.made_ahead,
                       "it is no index of this version, expected what `npyfs index -o` has "
                       "written; write it anew");
    }
    index->made_ahead_folder_ = folder_of(given.made_ahead);
  }
  if (!given.target.empty()) {
    require_replaceable(given.target);
    index->target_folder_ = folder_of(given.target);
  }
  try {
    index->open_folder();
    index->is_usable_ = !given.folder.empty();
  } catch (const Error&) {
    if (given.keeps_all && given.target.empty()) {
      throw;
    }
    index->file_.reset();
  }
  // The sources need the descriptors.
  index->folder_.reset();
  index->start_writing();
  if (!given.target.empty()) {
    index->writer_->flush();  // what cannot be written is said before hours of reading
  }
  return index;
}

SetIndex::~SetIndex() { give_up(); }

void SetIndex::open_folder() {
  if (options_.folder.empty()) {
    return;
  }
  std::error_code ignored;
  stdfs::create_directories(stdfs::path(options_.folder).parent_path(), ignored);
  folder_.emplace(options_.folder);
  PageKey key;
  key.add(options_.set);
  for (const std::byte byte : page_name(options_.version, key)) {
    name_ += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  if (!folder_->look(name_ + kIndexEnding)) {
    return;
  }
  DiskFile file = folder_->open(name_ + kIndexEnding, O_RDONLY);
  read_stamp(file);
  file_ = IndexFile::open(std::move(file),
                          is_stamped_ ? IndexFile::Trust::kOurs : IndexFile::Trust::kUnstamped);
}

// And notes that the index was used.
void SetIndex::read_stamp(const DiskFile& file) {
  if (!folder_->look(name_ + kStampEnding)) {
    return;
  }
  const DiskFile stamp_file = folder_->open(name_ + kStampEnding, O_RDONLY);
  const Stamp expected = stamp_of(file.look());
  Stamp found;
  is_stamped_ = stamp_file.read(0, std::as_writable_bytes(std::span(&found, 1))) &&
                std::memcmp(&found, &expected, sizeof found) == 0;
  ::futimens(stamp_file.descriptor(), nullptr);
}

void SetIndex::start_writing() {
  if (!is_usable_ && options_.target.empty()) {
    return;
  }
  writer_.emplace([this]() -> DiskFile {
    if (options_.target.empty()) {
      folder_.emplace(options_.folder);
      const DiskFolder::Space space = folder_->space();
      if (space.free_nbytes < space.nbytes / kLeastFreePart) {
        throw system_error(folder_->path(), "write to", ENOSPC);
      }
    }
    const bool is_target = !options_.target.empty();
    DiskFile file = make_new_file(is_target ? options_.target : folder_->path_of(name_),
                                  is_target ? 0644 : 0600);
    new_name_ = file.name();
    return file;
  });
}

void SetIndex::give_up() noexcept {
  writer_.reset();
  if (!new_name_.empty()) {
    ::unlink(new_name_.c_str());
    new_name_.clear();
  }
}

PageName SetIndex::portable_name(const PageKey& key, const std::string& index_path) const {
  return index_path.empty() ? kNoPageName : portable_page_name(options_.version, key, index_path);
}

std::optional<PageReader> SetIndex::find(const PageKey& key) {
  std::optional<PageReader> page;
  try {
    if (options_.finds_nothing) {
      ++result_.misses;
      return std::nullopt;
    }
    const PageEntry* const entry =
        file_ != nullptr ? file_->find(page_name(options_.version, key)) : nullptr;
    if (entry != nullptr) {
      page = file_->read(*entry);
      if (page) {
        used_.insert({entry, portable_name(key, target_folder_)});
        ++result_.hits;
        return page;
      }
    }
    const PageEntry* const ahead =
        made_ahead_ != nullptr ? made_ahead_->find_portable(portable_name(key, made_ahead_folder_))
                               : nullptr;
    if (ahead != nullptr) {
      page = made_ahead_->read(*ahead);
    }
  } catch (const Error&) {
    // A disk that fails is a miss.
  }
  if (!page) {
    ++result_.misses;
    return std::nullopt;
  }
  ++result_.hits;
  add_copy(key, *page);
  return page;
}

// So that the next opening finds it in the folder.
void SetIndex::add_copy(const PageKey& key, const PageReader& page) {
  if (writer_ && !is_too_new(key.mtime_ns(), opened_at_)) {
    attempt([&] {
      writer_->add_bytes(page_name(options_.version, key), portable_name(key, target_folder_),
                         page.left());
    });
    source_nbytes_ += key.nbytes();
  }
}

template <typename Action>
void SetIndex::attempt(const Action& action) {
  try {
    action();
  } catch (const Error&) {
    give_up();
    if (options_.keeps_all || !options_.target.empty()) {
      throw;
    }
  }
}

void SetIndex::keep(const PageKey& key, const std::function<void(PageWriter&)>& write) {
  if (is_too_new(key.mtime_ns(), opened_at_)) {
    ++result_.too_new;
    return;
  }
  if (!writer_) {
    return;
  }
  const PageName name = page_name(options_.version, key);
  // One that was found, and could not be understood.
  if (const PageEntry* const entry = file_ != nullptr ? file_->find(name) : nullptr) {
    used_.erase({entry, {}});
  }
  writer_->forget_last(name);
  attempt([&] { writer_->add(name, portable_name(key, target_folder_), write); });
  source_nbytes_ += key.nbytes();
}

IndexResult SetIndex::finish() {
  const bool is_new = writer_ && writer_->size() > 0 &&
                      (options_.keeps_all || source_nbytes_ >= kLeastSourceNbytes);
  const bool is_unstamped = file_ != nullptr && !is_stamped_ && !used_.empty();
  if (writer_ && (is_new || is_unstamped || !options_.target.empty())) {
    attempt([&] { write_file(); });
  }
  give_up();
  return result_;
}

void SetIndex::write_file() {
  for (const Used& used : used_) {
    std::vector<std::uint64_t> copy;
    writer_->add_bytes(used.entry->name, used.portable_name, file_->bytes(*used.entry, copy));
  }
  const DiskFile& file = writer_->finish();
  const std::string to =
      options_.target.empty() ? folder_->path_of(name_ + kIndexEnding) : options_.target;
  if (::rename(new_name_.c_str(), to.c_str()) != 0) {
    throw system_error(to, "write", errno);
  }
  new_name_.clear();
  result_.path = to;
  result_.pages = writer_->size();
  result_.nbytes = writer_->nbytes();
  if (options_.target.empty()) {
    write_stamp(file);
    clean_folder();
  }
}

void SetIndex::write_stamp(const DiskFile& index_file) {
  const DiskFile file = make_new_file(folder_->path_of(name_), 0600);
  const Stamp stamp = stamp_of(index_file.look());
  file.write(0, std::as_bytes(std::span(&stamp, 1)));
  // Of another mount's index by now, maybe: then it is no stamp of that one.
  if (::rename(file.name().c_str(), folder_->path_of(name_ + kStampEnding).c_str()) != 0) {
    throw system_error(file.name(), "rename", errno);
  }
}

// Removes what nobody has used for long, and what writers left that died.
void SetIndex::clean_folder() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (const std::string& name : folder_->names()) {
    const auto status = folder_->look(name);
    if (!status) {
      continue;
    }
    const auto age = now - std::chrono::nanoseconds(to_ns(status->st_mtim));
    const std::string stamped(stem_of(name, kStampEnding));
    const std::string indexed(stem_of(name, kIndexEnding));
    const bool is_unused =
        age > kUnusedFor &&
        (!stamped.empty() || (!indexed.empty() && !folder_->look(indexed + kStampEnding)));
    if (is_unused && !stamped.empty()) {
      folder_->unlink(stamped + kIndexEnding);
    }
    if (is_unused || (is_unfinished(name) && age > kAbandonedFor)) {
      folder_->unlink(name);
    }
  }
}

}  // namespace npyfs
