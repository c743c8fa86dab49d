// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <optional>

#include "formats/bytes/endian.h"
#include "formats/hdf5/child_describe.h"
#include "formats/hdf5/child_file.h"
#include "formats/hdf5/child_filters.h"
#include "formats/hdf5/child_handle.h"
#include "formats/hdf5/child_read.h"
#include "formats/hdf5/sandbox.h"
#include "formats/hdf5/wire.h"

namespace npyfs {

namespace {

constexpr rlim_t kMostMemory = rlim_t{4} << 30;
constexpr rlim_t kCpuSeconds = 10;  // from one frame to the next
// 0 to 3, which are open: no other can be.
constexpr rlim_t kDescriptors = kChildFile + 1;
constexpr std::uint32_t kMostRequestNbytes = 1 << 20;

// Whether it took hold.
bool limit(__rlimit_resource what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) {
    return false;
  }
  now.rlim_max = std::min(now.rlim_max, most);
  now.rlim_cur = now.rlim_max;
  return ::setrlimit(what, &now) == 0;
}

// A library that goes round in circles is ended.
void allow_cpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  rlimit now{};
  ::getrlimit(RLIMIT_CPU, &now);
  now.rlim_cur = std::min(
      now.rlim_max, static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kCpuSeconds);
  ::setrlimit(RLIMIT_CPU, &now);
}

// Before the library sees a byte of the file. False, with errno, where the system refuses any of
// it.
bool confine() {
  ::prctl(PR_SET_NAME, "npyfs-hdf5", 0, 0, 0);
  bool done = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && limit(RLIMIT_CORE, 0) &&
              limit(RLIMIT_FSIZE, 0);
  // Sanitizers take more memory, and read /proc/self/maps when an exception is thrown.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  done = done && limit(RLIMIT_AS, kMostMemory) && limit(RLIMIT_NOFILE, kDescriptors);
#endif
  allow_cpu();
  return done && forbid_other_system_calls();
}

// The parent has gone, or no longer wants the answer.
struct ParentGone {};

void write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(kChildSocket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) {
      throw ParentGone();
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }
}

// False at the end.
bool read_all(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::recv(kChildSocket, bytes.data(), bytes.size(), 0);
    if (n == 0 || (n < 0 && errno != EINTR)) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }
  return true;
}

bool read_request(WireFrame& request) {
  std::byte head[kFrameHeadNbytes];
  if (!read_all(head)) {
    return false;
  }
  const auto nbytes = load_le<std::uint32_t>(head);
  if (nbytes == 0 || nbytes > kMostRequestNbytes) {
    return false;
  }
  request.kind = static_cast<FrameKind>(head[kFrameHeadNbytes - 1]);
  request.bytes.resize(nbytes - 1);
  return read_all(request.bytes);
}

void send_frame(WireFrameWriter& frame) {
  write_all(frame.finish());
  allow_cpu();
}

void answer(hid_t file, BoxReader& reader, const WireFrame& request) {
  static const std::string kName = "the request";
  WireFrameReader fields(request.bytes, kName);
  const std::string path = fields.take_text();
  switch (request.kind) {
    case FrameKind::kDescribe:
      describe_object(file, path, send_frame);
      break;
    case FrameKind::kChunks:
      list_chunks(file, path, send_frame);
      break;
    case FrameKind::kRead: {
      BoxRequest box;
      box.path = path;
      box.form = static_cast<ReadForm>(fields.take_u8());
      box.characters = fields.take_u32();
      box.start = fields.take_shape();
      box.count = fields.take_shape();
      box.skip_nbytes = fields.take_u64();
      box.nbytes = fields.take_u64();
      reader.read(box, send_frame);
      break;
    }
    default:
      throw ChildError("a question of no known kind");
  }
}

void send_failure(const std::string& text) {
  WireFrameWriter frame(FrameKind::kFailure);
  frame.add_text(text);
  send_frame(frame);
}

// Opens the file for the first request, keeps it for all. `refusal`, if any, is all there is to
// say.
void serve(const std::string& refusal) {
  H5File file;
  std::optional<BoxReader> reader;  // after the file, closed before it
  WireFrame request;
  while (read_request(request)) {
    allow_cpu();
    try {
      if (!refusal.empty()) {
        throw ChildError(refusal);
      }
      if (!file.is_open()) {
        file = open_child_file();
        reader.emplace(file.id());
      }
      answer(file.id(), *reader, request);
      WireFrameWriter end(FrameKind::kEnd);
      send_frame(end);
    } catch (const std::bad_alloc&) {
      send_failure("the HDF5 library needs more memory than it may have");
    } catch (const std::exception& error) {
      send_failure(error.what());
    }
  }
}

// The deepest entry of the error stack tells what was wrong, those above who called whom.
herr_t take_description(unsigned depth, const H5E_error2_t* error, void* text) {
  if (depth == 0 && error->desc != nullptr) {
    *static_cast<std::string*>(text) = error->desc;
  }
  return 0;
}

}  // namespace

std::string last_hdf5_error() {
  std::string text = "it does not say why";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_description, &text);
  return text;
}

ChildError hdf5_failed(const std::string& what) {
  return ChildError(fmt::format("{}: {}", what, last_hdf5_error()));
}

int run_hdf5_child() {
  ::close_range(kChildFile + 1, ~0U, 0);
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  // No plugin is loaded on a file's word.
  H5PLset_loading_state(0);
  register_filters();
  // All this is without the file; from here on the library is not to be trusted.
  std::string refusal;
  if (!confine()) {
    refusal =
        fmt::format("the HDF5 library is not run, as the system does not let it be confined: {}",
                    std::strerror(errno));
  }
  try {
    serve(refusal);
  } catch (const ParentGone&) {
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
  return 0;
}

}  // namespace npyfs
