// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "formats/bytes/descriptor_pool.h"
#include "formats/bytes/error.h"

extern char** environ;

namespace npyfs {

namespace {

using Clock = std::chrono::steady_clock;

using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kMostNbytes = std::size_t{1} << 30;
constexpr std::size_t kPieceNbytes = 1 << 20;

// What a command has printed. In pieces: one vector would be copied as it grows.
struct Output {
  std::vector<std::vector<std::byte>> pieces;
  std::uint64_t nbytes = 0;
};

// Two 64-bit hashes that have nothing to do with each other: one output is told from another.
struct Fingerprint {
  std::uint64_t sum = 0xcbf29ce484222325;
  std::uint64_t product = 1;
  bool operator==(const Fingerprint&) const = default;
};
Fingerprint fingerprint_of(const Output& output) {
  Fingerprint found;
  for (const auto& piece : output.pieces) {
    for (const std::byte byte : piece) {
      found.sum = (found.sum ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
      found.product =
          (found.product + std::to_integer<std::uint64_t>(byte) + 1) * 0x9e3779b97f4a7c15;
      found.product ^= found.product >> 29;
    }
  }
  return found;
}

std::string shown_command(const std::string& text) {
  constexpr std::size_t kMostShownNbytes = 200;
  return fmt::format("command '{}'{}", text.substr(0, kMostShownNbytes),
                     text.size() > kMostShownNbytes ? "..." : "");
}

// A running command with its standard output.
class Command {
 public:
  Command(const std::string& text, const std::string& directory, Milliseconds most_time)
      : text_(text), most_time_(most_time), deadline_(Clock::now() + most_time) {
    int ends[2];
    if (open_descriptor([&] { return ::pipe2(ends, O_CLOEXEC); }) != 0) {
      throw system_error(shown(), "make a pipe for", errno);
    }
    output_ = ends[0];
    const int error = spawn(ends[1], directory);
    ::close(ends[1]);
    if (error != 0) {
      ::close(output_);
      throw system_error(shown(), "run", error);
    }
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    ::close(output_);
    if (child_ > 0) {
      ::kill(-child_, SIGKILL);
      reap();
    }
  }

  Output read_all() {
    Output output;
    std::vector<std::byte> piece(kPieceNbytes);
    std::size_t filled = 0;
    for (;;) {
      wait_until_ready(output_);
      const ssize_t n = ::read(output_, piece.data() + filled, piece.size() - filled);
      if (n < 0 && errno != EINTR) {
        throw system_error(shown(), "read the output of", errno);
      }
      filled += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
      if (output.nbytes + filled > kMostNbytes) {
        throw fault("prints more than 1 GiB, expected less");
      }
      if (filled == piece.size() || n == 0) {
        output.nbytes += filled;
        output.pieces.emplace_back(piece.begin(),
                                   piece.begin() + static_cast<std::ptrdiff_t>(filled));
        filled = 0;
      }
      if (n == 0) {
        break;
      }
    }
    require_success();
    return output;
  }

 private:
  int spawn(int output, const std::string& directory) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, 1);
    ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    // A group of its own, so that all it has started can be ended.
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    const char* const arguments[] = {"sh", "-c", text_.c_str(), nullptr};
    const int error = ::posix_spawn(&child_, "/bin/sh", &actions, &attributes,
                                    const_cast<char* const*>(arguments), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) {
      child_ = 0;
    }
    return error;
  }

  // Until there is something to read from `descriptor`, or it has ended.
  void wait_until_ready(int descriptor) const {
    for (;;) {
      const auto left = std::chrono::duration_cast<Milliseconds>(deadline_ - Clock::now());
      pollfd ready{descriptor, POLLIN, 0};
      const int found =
          ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
      if (found > 0) {
        return;
      }
      if (found == 0) {
        throw fault(fmt::format("runs for more than {} s, expected it to end before",
                                std::chrono::duration<double>(most_time_).count()));
      }
      if (errno != EINTR) {
        throw system_error(shown(), "wait for", errno);
      }
    }
  }

  // The error of waiting, or 0; the child is then gone.
  int reap() {
    int error = 0;
    do {
      error = ::waitpid(child_, &status_, 0) < 0 ? errno : 0;
    } while (error == EINTR);
    child_ = 0;
    return error;
  }

  // A command may have closed its output and go on.
  void require_success() {
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child_, 0));
    if (handle < 0) {
      throw system_error(shown(), "wait for", errno);
    }
    try {
      wait_until_ready(handle);
    } catch (...) {
      ::close(handle);
      throw;
    }
    ::close(handle);
    // What it has left behind in the background. The number is its own until it is reaped.
    ::kill(-child_, SIGKILL);
    if (const int error = reap(); error != 0) {
      throw system_error(shown(), "wait for", error);
    }
    if (!WIFEXITED(status_) || WEXITSTATUS(status_) != 0) {
      throw fault(
          WIFEXITED(status_)
              ? fmt::format("ends with exit code {}, expected 0", WEXITSTATUS(status_))
              : fmt::format("is ended by signal {}, expected exit code 0", WTERMSIG(status_)));
    }
  }

  std::string shown() const { return shown_command(text_); }
  Error fault(const std::string& text) const {
    return file_error(ErrorKind::kCorrupt, shown(), text);
  }

  const std::string& text_;
  Milliseconds most_time_;
  Clock::time_point deadline_;
  int output_ = -1;
  pid_t child_ = 0;
  int status_ = 0;
};

// The output of one command, as one chunk. The first run is handed over when the cache first asks.
class PipeChunks : public ChunkSource {
 public:
  PipeChunks(std::string command, std::string directory, Milliseconds most_time)
      : command_(std::move(command)),
        directory_(std::move(directory)),
        most_time_(most_time),
        first_(Command(command_, directory_, most_time_).read_all()),
        nbytes_(first_.nbytes),
        fingerprint_(fingerprint_of(first_)) {}

  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return nbytes_; }
  std::uint64_t nbytes() const { return nbytes_; }
  // To be called when the cache has had its chance, before other threads see this.
  void forget_first() { first_ = {}; }

  void decode(std::uint64_t /*chunk*/, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    if (!first_.pieces.empty()) {
      copy(first_, out);
      return;
    }
    const Output again = Command(command_, directory_, most_time_).read_all();
    if (again.nbytes != nbytes_) {
      throw file_error(ErrorKind::kCorrupt, shown_command(command_),
                       fmt::format("prints {} bytes, expected {} as when it was mounted",
                                   again.nbytes, nbytes_));
    }
    if (!(fingerprint_of(again) == fingerprint_)) {
      throw file_error(ErrorKind::kCorrupt, shown_command(command_),
                       "prints other bytes, expected those of when it was mounted");
    }
    copy(again, out);
  }

 private:
  static void copy(const Output& output, std::span<std::byte> out) {
    for (const auto& piece : output.pieces) {
      std::copy(piece.begin(), piece.end(), out.begin());
      out = out.subspan(piece.size());
    }
  }

  std::string command_;
  std::string directory_;
  Milliseconds most_time_;
  Output first_;
  std::uint64_t nbytes_;
  Fingerprint fingerprint_;
};

}  // namespace

SourcePtr run_pipe(const std::string& command, const std::string& directory,
                   const SourcePtr& script, ChunkCache& cache, Milliseconds most_time) {
  auto chunks = std::make_unique<PipeChunks>(command, directory, most_time);
  PipeChunks& handed_over = *chunks;
  const std::uint64_t nbytes = chunks->nbytes();
  auto source = std::make_shared<CachedSource>(script, nbytes, std::max<std::uint64_t>(nbytes, 1),
                                               std::move(chunks), cache);
  if (nbytes > 0) {
    std::byte byte{};
    source->read_at(0, {&byte, 1});
  }
  handed_over.forget_first();
  return source;
}

}  // namespace npyfs
