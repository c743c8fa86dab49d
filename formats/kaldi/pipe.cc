// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "formats/bytes/error.h"

extern char** environ;

namespace npyfs {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kMostTime{10};
constexpr std::size_t kMostNbytes = std::size_t{1} << 30;
constexpr std::size_t kPieceNbytes = 1 << 16;

// A running command with its standard output.
class Command {
 public:
  Command(std::string text, const std::string& directory) : text_(std::move(text)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      throw system_error(text_, "make a pipe for", errno);
    }
    output_ = ends[0];
    const int error = spawn(ends[1], directory);
    ::close(ends[1]);
    if (error != 0) {
      ::close(output_);
      throw system_error(text_, "run", error);
    }
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    ::close(output_);
    if (child_ > 0) {
      ::kill(-child_, SIGKILL);
      wait();
    }
  }

  std::vector<std::byte> read_all() {
    std::vector<std::byte> bytes;
    const auto deadline = Clock::now() + kMostTime;
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd ready{output_, POLLIN, 0};
      const int found = ::poll(&ready, 1, std::max(0, static_cast<int>(left.count())));
      if (found == 0) {
        throw fault("runs for more than 10 minutes, expected it to end before");
      }
      const std::size_t before = bytes.size();
      bytes.resize(before + kPieceNbytes);
      const ssize_t n = found < 0 ? -1 : ::read(output_, bytes.data() + before, kPieceNbytes);
      const int error = errno;
      bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
      if (n == 0) {
        break;
      }
      if (n < 0 && error != EINTR) {
        throw system_error(text_, "read the output of", error);
      }
      if (bytes.size() > kMostNbytes) {
        throw fault("prints more than 1 GiB, expected less");
      }
    }
    require_success();
    return bytes;
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

  int wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = 0;
    return status;
  }

  void require_success() {
    const int status = wait();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      throw fault(
          WIFEXITED(status)
              ? fmt::format("ends with exit code {}, expected 0", WEXITSTATUS(status))
              : fmt::format("is ended by signal {}, expected exit code 0", WTERMSIG(status)));
    }
  }

  Error fault(const std::string& text) const {
    return file_error(ErrorKind::kCorrupt, fmt::format("command '{}'", text_), text);
  }

  std::string text_;
  int output_ = -1;
  pid_t child_ = 0;
};

// The output of one command, as one chunk. The first run is handed over when the cache first asks.
class PipeChunks : public ChunkSource {
 public:
  PipeChunks(std::string command, std::string directory)
      : command_(std::move(command)),
        directory_(std::move(directory)),
        first_(Command(command_, directory_).read_all()),
        nbytes_(first_.size()) {}

  std::uint64_t chunk_nbytes(std::uint64_t /*chunk*/) const override { return nbytes_; }
  std::uint64_t nbytes() const { return nbytes_; }
  // To be called when the cache has had its chance, before other threads see this.
  void forget_first() { first_ = {}; }

  void decode(std::uint64_t /*chunk*/, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    const bool first = first_.size() == nbytes_;
    const std::vector<std::byte> again =
        first ? std::vector<std::byte>() : Command(command_, directory_).read_all();
    const std::vector<std::byte>& bytes = first ? first_ : again;
    if (bytes.size() != nbytes_) {
      throw file_error(ErrorKind::kCorrupt, fmt::format("command '{}'", command_),
                       fmt::format("prints {} bytes, expected {} as when it was mounted",
                                   bytes.size(), nbytes_));
    }
    std::memcpy(out.data(), bytes.data(), out.size());
  }

 private:
  std::string command_;
  std::string directory_;
  std::vector<std::byte> first_;
  std::uint64_t nbytes_;
};

}  // namespace

SourcePtr run_pipe(const std::string& command, const std::string& directory,
                   const SourcePtr& script, ChunkCache& cache) {
  auto chunks = std::make_unique<PipeChunks>(command, directory);
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
