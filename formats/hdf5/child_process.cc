// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/endian.h"
#include "formats/bytes/error.h"
#include "formats/hdf5/child.h"

namespace npyfs {

namespace {

using Clock = Hdf5Process::Clock;

// Of a frame: attributes, each number of which takes 9 bytes, and their names. A longer one is read
// as far as the file's own size makes it believable.
constexpr std::uint64_t kUsualFrameNbytes =
    9 * kMostAttributeValues + kMostAttributeNbytes + (std::uint64_t{16} << 20);

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// What a signal means for the user.
std::string cause_of_death(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGXCPU || signal == SIGKILL) {
      return "did not come to an end with it";
    }
    return fmt::format("crashed on it (signal {})", signal);
  }
  return "gave up on it";
}

}  // namespace

class Hdf5Process::Child {
 public:
  // `patience` outlives it.
  Child(const ByteSource& source, const Patience& patience)
      : name_(source.name()), patience_(patience) {
    const Descriptor file(source.open_again());
    int ends[2];
    if (open_descriptor(
            [&] { return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends); }) != 0) {
      throw system_error(name_, "make a socket for the reader of", errno);
    }
    socket_ = ends[0];
    const Descriptor theirs(ends[1]);
    const int error = spawn(theirs.get(), file.get());
    if (error != 0) {
      ::close(socket_);
      throw system_error(name_, "start the reader of", error);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::close(socket_);
    kill();
    wait();
  }

  void send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EINTR) {
        throw died();
      }
      bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    }
  }

  void receive(WireFrame& frame, std::uint64_t most_nbytes, Clock::time_point end) {
    std::byte head[kFrameHeadNbytes];
    receive(head, end);
    const auto nbytes = load_le<std::uint32_t>(head);
    if (nbytes == 0 || nbytes > most_nbytes) {
      throw file_error(ErrorKind::kCorrupt, name_,
                       fmt::format("the HDF5 library says {} bytes of it at once, expected at most "
                                   "{}; the file is damaged or crafted",
                                   nbytes, most_nbytes));
    }
    frame.kind = static_cast<FrameKind>(head[kFrameHeadNbytes - 1]);
    frame.bytes.resize(nbytes - 1);
    receive(frame.bytes, end);
  }

 private:
  void receive(std::span<std::byte> out, Clock::time_point end) {
    using std::chrono::milliseconds;
    while (!out.empty()) {
      pollfd ready{socket_, POLLIN, 0};
      const auto left = std::chrono::duration_cast<milliseconds>(end - patience_.now());
      const auto most = std::clamp<milliseconds>(left, milliseconds(0), patience_.silence);
      const int found = ::poll(&ready, 1, static_cast<int>(most.count()));
      if (found == 0 || left <= milliseconds(0)) {
        throw file_error(ErrorKind::kIo, name_,
                         "the HDF5 library has not answered in time; what it waits for may be slow "
                         "storage: read again once that answers");
      }
      const ssize_t n = found < 0 ? -1 : ::recv(socket_, out.data(), out.size(), 0);
      if (n == 0 || (n < 0 && errno != EINTR)) {
        throw died();
      }
      out = out.subspan(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    }
  }

  int spawn(int socket, int file) {
    // Above those that they are copied to: none overwrites another.
    const Descriptor high_socket(::fcntl(socket, F_DUPFD_CLOEXEC, 16));
    if (high_socket.get() < 0) {
      return errno;
    }
    const Descriptor high_file(::fcntl(file, F_DUPFD_CLOEXEC, 16));
    if (high_file.get() < 0) {
      return errno;
    }
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&actions, high_socket.get(), kChildSocket);
    ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, high_file.get(), kChildFile);
    ::posix_spawn_file_actions_addchdir_np(&actions, "/");
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    sigset_t signals;
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    sigaddset(&signals, SIGPIPE);
    sigaddset(&signals, SIGXCPU);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    const std::string argument(kHdf5ChildArgument);
    const char* const arguments[] = {"npyfs", argument.c_str(), nullptr};
    // Of the environment nothing that would tell libhdf5 where to look for other files. A read must
    // not wait for, or fail because of, a writer's lock.
    std::vector<std::string> environment = {"HDF5_USE_FILE_LOCKING=FALSE",
                                            "HDF5_PLUGIN_PRELOAD=::", "LC_ALL=C"};
    for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
      if (const char* const value = std::getenv(name); value != nullptr) {
        environment.push_back(fmt::format("{}={}", name, value));
      }
    }
    std::vector<char*> environment_pointers;
    for (std::string& variable : environment) {
      environment_pointers.push_back(variable.data());
    }
    environment_pointers.push_back(nullptr);
    const int error =
        ::posix_spawn(&pid_, "/proc/self/exe", &actions, &attributes,
                      const_cast<char* const*>(arguments), environment_pointers.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) {
      pid_ = 0;
    }
    return error;
  }

  // Once it has been waited for it has no number; 0 would be npyfs itself and all it belongs to.
  void kill() const {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
    }
  }

  int wait() {
    int status = 0;
    while (pid_ > 0 && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  Error died() {
    // It may only have closed its socket.
    for (int tries = 0; tries < 100 && pid_ > 0; ++tries) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = 0;
        return fault(cause_of_death(status));
      }
      ::poll(nullptr, 0, 10);
    }
    kill();
    return fault(cause_of_death(wait()));
  }

  Error fault(const std::string& what) const {
    return file_error(ErrorKind::kCorrupt, name_,
                      fmt::format("the HDF5 library {}; the file is damaged or crafted", what));
  }

  const std::string& name_;
  const Patience& patience_;
  int socket_ = -1;
  pid_t pid_ = 0;
};

Hdf5Process::Hdf5Process(SourcePtr source, Patience patience)
    : source_(std::move(source)), patience_(std::move(patience)) {}

Hdf5Process::~Hdf5Process() = default;

void Hdf5Process::rest() const {
  const std::lock_guard lock(mutex_);
  child_.reset();
}

void Hdf5Process::ask(WireFrameWriter& request, Clock::time_point end,
                      const TakeFrame& take) const {
  const std::lock_guard lock(mutex_);
  ask_alone(request, end, take);
}

void Hdf5Process::ask(WireFrameWriter& request, Clock::duration most, const TakeFrame& take) const {
  const std::lock_guard lock(mutex_);
  ask_alone(request, patience_.now() + most, take);
}

void Hdf5Process::ask_alone(WireFrameWriter& request, Clock::time_point end,
                            const TakeFrame& take) const {
  const auto question = request.finish();
  // A child that was idle may have been killed by whoever lacked memory: then another one is asked,
  // once, as long as nothing of an answer has been taken.
  for (bool again = child_ != nullptr;; again = false) {
    bool answered = false;
    try {
      if (child_ == nullptr) {
        source_->check_unchanged();
        child_ = std::make_unique<Child>(*source_, patience_);
      }
      child_->send(question);
      const std::uint64_t most =
          kUsualFrameNbytes + std::min<std::uint64_t>(source_->nbytes(), UINT32_MAX / 2);
      WireFrame frame;
      do {
        child_->receive(frame, most, end);
        answered = true;
      } while (!take(frame));
      return;
    } catch (const Error& error) {
      // Half an answer may be left in the socket.
      child_.reset();
      if (!again || answered || error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
    } catch (...) {
      child_.reset();
      throw;
    }
  }
}

void Hdf5Process::read(const std::string& path, ReadForm form, std::uint32_t characters,
                       const Shape& start, const Shape& count, std::uint64_t skip_nbytes,
                       std::span<std::byte> out) const {
  WireFrameWriter request(FrameKind::kRead);
  request.add_text(path).add_u8(static_cast<std::uint8_t>(form)).add_u32(characters);
  request.add_shape(start).add_shape(count).add_u64(skip_nbytes).add_u64(out.size());
  const auto wrong = [&](const std::string& text) {
    return file_error(ErrorKind::kCorrupt, source_->name(),
                      fmt::format("{} from {}: {}", path, shape_text(start), text));
  };
  // The bytes are those of the source as it was when it was mounted, or nobody's.
  std::byte first{};
  source_->read_at(0, {&first, 1});
  std::string failure;
  ask(request, patience_.block, [&](const WireFrame& frame) {
    switch (frame.kind) {
      case FrameKind::kData:
        if (frame.bytes.size() > out.size()) {
          throw wrong("the HDF5 library gives more than was asked for");
        }
        std::copy(frame.bytes.begin(), frame.bytes.end(), out.begin());
        out = out.subspan(frame.bytes.size());
        return false;
      case FrameKind::kEnd:
        if (!out.empty()) {
          throw wrong("the HDF5 library gives less than was asked for");
        }
        return true;
      case FrameKind::kFailure:
        failure = WireFrameReader(frame.bytes, source_->name()).take_text();
        return true;
      default:
        throw wrong("the HDF5 library answers another question");
    }
  });
  if (!failure.empty()) {
    throw wrong(failure);
  }
}

}  // namespace npyfs
