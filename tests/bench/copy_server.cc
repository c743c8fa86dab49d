// SPDX-License-Identifier: Apache-2.0
//
// What npyfs is measured against: the least that a low-level libfuse server can do. It shows one
// file, named "file", and answers each read by copying from one local file.
//
//   copy_server FILE MOUNTPOINT    serves in the foreground until unmounted

#define FUSE_USE_VERSION 312

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr double kForever = 3600.0;  // seconds: the file does not change
constexpr fuse_ino_t kFile = 2;

int source_fd = -1;
struct stat source_stat {};

struct stat stat_of(fuse_ino_t ino) {
  struct stat st {};
  st.st_ino = ino;
  st.st_nlink = 1;
  st.st_mode = ino == kFile ? S_IFREG | 0444 : S_IFDIR | 0555;
  st.st_size = ino == kFile ? source_stat.st_size : 0;
  return st;
}

void on_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (parent != FUSE_ROOT_ID || std::strcmp(name, "file") != 0) {
    fuse_reply_err(req, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kFile;
  entry.attr = stat_of(kFile);
  entry.attr_timeout = kForever;
  entry.entry_timeout = kForever;
  fuse_reply_entry(req, &entry);
}

void on_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* /*file*/) {
  const struct stat st = stat_of(ino);
  fuse_reply_attr(req, &st, kForever);
}

void on_open(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* file) {
  file->keep_cache = 1;
  fuse_reply_open(req, file);
}

void on_read(fuse_req_t req, fuse_ino_t /*ino*/, size_t nbytes, off_t offset,
             fuse_file_info* /*file*/) {
  thread_local std::vector<char> buffer;
  buffer.resize(nbytes);
  const ssize_t got = pread(source_fd, buffer.data(), nbytes, offset);
  if (got < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  fuse_reply_buf(req, buffer.data(), static_cast<size_t>(got));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: copy_server FILE MOUNTPOINT\n");
    return 2;
  }
  source_fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (source_fd < 0 || fstat(source_fd, &source_stat) != 0) {
    std::perror(argv[1]);
    return 1;
  }
  fuse_lowlevel_ops operations{};
  operations.lookup = on_lookup;
  operations.getattr = on_getattr;
  operations.open = on_open;
  operations.read = on_read;

  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&args, argv[0]);
  fuse_opt_add_arg(&args, "-oro,fsname=copy_server,subtype=copy_server");
  fuse_session* session = fuse_session_new(&args, &operations, sizeof operations, nullptr);
  int result = 1;
  if (session != nullptr && fuse_set_signal_handlers(session) == 0) {
    if (fuse_session_mount(session, argv[2]) == 0) {
      fuse_loop_config* config = fuse_loop_cfg_create();
      result = fuse_session_loop_mt(session, config) == 0 ? 0 : 1;
      fuse_loop_cfg_destroy(config);
      fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
  }
  if (session != nullptr) {
    fuse_session_destroy(session);
  }
  fuse_opt_free_args(&args);
  close(source_fd);
  return result;
}
