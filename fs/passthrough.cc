// SPDX-License-Identifier: Apache-2.0

#include "fs/passthrough.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "formats/bytes/error.h"
#include "fs/fuse_ops.h"

namespace npyfs {

namespace {

// linux/fuse.h of Linux 6.9; Debian 12's is older.
constexpr std::uint32_t kPassthroughFlag2 = 1U << 5;  // of flags2 in INIT: bit 37 of all flags
constexpr std::uint32_t kOpenPassthrough = 1U << 7;
constexpr std::uint32_t kOpenDirectIo = 1U << 0;

struct BackingMap {
  std::int32_t fd;
  std::uint32_t flags;
  std::uint64_t padding;
};
static_assert(sizeof(BackingMap) == 16);
constexpr unsigned long kBackingOpen = _IOW(229, 1, BackingMap);
constexpr unsigned long kBackingClose = _IOW(229, 2, std::uint32_t);

struct OpenReply {
  std::uint64_t handle;
  std::uint32_t flags;
  std::int32_t backing;
};
static_assert(sizeof(OpenReply) == 16);

// Backing files lie on plain file systems, and an overlay may have the mount as its lower folder.
// With 2 they might lie on an overlay, and no overlay on the mount.
constexpr std::uint32_t kMaxStackDepth = 1;
constexpr std::size_t kStackDepthOffset = offsetof(fuse_init_out, flags2) + 4;

constexpr const char* kNotOffered =
    "the kernel does not offer FUSE passthrough (Linux 6.9 or later, CONFIG_FUSE_PASSTHROUGH)";

bool has_sys_admin() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, data) != 0) {
    return false;
  }
  return (data[0].effective >> CAP_SYS_ADMIN & 1) != 0;
}

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// A request's memory is libfuse's.
struct Request {
  fuse_buf buffer{};
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { std::free(buffer.mem); }
};

template <typename Call>
int retry(Call call) {
  int result = -1;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

bool offers_passthrough(const fuse_buf& request) {
  struct {
    fuse_in_header header;
    fuse_init_in init;
  } question{};
  const std::size_t needed = sizeof(fuse_in_header) + offsetof(fuse_init_in, unused);
  if ((request.flags & FUSE_BUF_IS_FD) != 0 || request.size < needed) {
    return false;
  }
  std::memcpy(&question, request.mem, needed);
  return question.header.opcode == FUSE_INIT && (question.init.flags & FUSE_INIT_EXT) != 0 &&
         (question.init.flags2 & kPassthroughFlag2) != 0;
}

// Whether the answer has a place for it.
bool ask_in(std::string& answer) {
  constexpr std::size_t kHeader = sizeof(fuse_out_header);
  fuse_out_header header{};
  fuse_init_out init{};
  if (answer.size() != kHeader + sizeof init) {
    return false;
  }
  std::memcpy(&header, answer.data(), kHeader);
  std::memcpy(&init, answer.data() + kHeader, sizeof init);
  if (header.error != 0) {
    return false;
  }
  init.flags |= FUSE_INIT_EXT;
  init.flags2 |= kPassthroughFlag2;
  std::memcpy(answer.data() + kHeader, &init, sizeof init);
  std::memcpy(answer.data() + kHeader + kStackDepthOffset, &kMaxStackDepth, sizeof kMaxStackDepth);
  return true;
}

// What libfuse answers to the request, which it is made to write to a socket. Empty: nothing.
std::string answer_of(fuse_session* session, const fuse_buf& request) {
  const auto fail = [] { return system_error("/dev/fuse", "answer the first question", errno); };
  int ends[2];
  const int kernel = fuse_session_fd(session);
  const Descriptor saved(::fcntl(kernel, F_DUPFD_CLOEXEC, 0));
  if (saved.get() < 0 || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw fail();
  }
  const Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  if (retry([&] { return ::dup3(theirs.get(), kernel, O_CLOEXEC); }) < 0) {
    throw fail();
  }
  fuse_session_process_buf(session, &request);
  if (retry([&] { return ::dup3(saved.get(), kernel, O_CLOEXEC); }) < 0) {
    throw fail();
  }
  std::string answer(4096, '\0');
  const ssize_t n = ::recv(ours.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  answer.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return answer;
}

#endif

}  // namespace

std::string why_no_passthrough() {
  if (!has_sys_admin()) {
    return "npyfs runs without CAP_SYS_ADMIN";
  }
  utsname about{};
  unsigned major = 0;
  unsigned minor = 0;
  const bool is_known =
      ::uname(&about) == 0 && std::sscanf(about.release, "%u.%u", &major, &minor) == 2;
  return is_known && (major < 6 || (major == 6 && minor < 9)) ? kNotOffered : "";
}

#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)

std::string begin_passthrough(fuse_session* session) {
  Request request;
  const int n = retry([&] {
    const int got = fuse_session_receive_buf(session, &request.buffer);
    errno = got < 0 ? -got : 0;
    return got < 0 && fuse_session_exited(session) != 0 ? 0 : got;
  });
  if (n <= 0) {
    return "the mount has ended";
  }
  if (!offers_passthrough(request.buffer)) {
    fuse_session_process_buf(session, &request.buffer);
    return kNotOffered;
  }
  std::string answer = answer_of(session, request.buffer);
  const bool asked = ask_in(answer);
  if (!answer.empty() && ::write(fuse_session_fd(session), answer.data(), answer.size()) < 0) {
    throw system_error("/dev/fuse", "answer the first question", errno);
  }
  return asked ? "" : kNotOffered;
}

void want_passthrough(fuse_conn_info* /*conn*/) {}

#else

std::string begin_passthrough(fuse_session* /*session*/) { return ""; }

// Its default stack depth is kMaxStackDepth.
void want_passthrough(fuse_conn_info* conn) { fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH); }

#endif

std::int32_t open_backing(fuse_session* session, int fd) {
  const BackingMap map{fd, 0, 0};
  const int backing = ::ioctl(fuse_session_fd(session), kBackingOpen, &map);
  return backing > 0 ? backing : -(backing < 0 ? errno : EIO);
}

void close_backing(fuse_session* session, std::int32_t backing) {
  const auto number = static_cast<std::uint32_t>(backing);
  ::ioctl(fuse_session_fd(session), kBackingClose, &number);
}

int reply_open_backed(fuse_req* request, const fuse_file_info& file, std::int32_t backing) {
  const OpenReply reply{file.fh, kOpenPassthrough | (file.direct_io != 0 ? kOpenDirectIo : 0),
                        backing};
  return fuse_reply_buf(request, reinterpret_cast<const char*>(&reply), sizeof reply);
}

}  // namespace npyfs
