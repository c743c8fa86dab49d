// SPDX-License-Identifier: Apache-2.0
//
// FUSE passthrough (Linux 6.9): the kernel reads a file of the mount from a backing file, without
// asking us. What libfuse before 3.17 cannot say to the kernel is said here.

#pragma once

#include <cstdint>
#include <string>

struct fuse_conn_info;
struct fuse_file_info;
struct fuse_req;
struct fuse_session;

namespace npyfs {

// Why this process on this kernel cannot have it, for users; empty where it may. Mounts nothing and
// tries nothing, so that a mount may still be refused.
std::string why_no_passthrough();

// To be called right after the mount, before anything is read from the session: takes the kernel's
// first question (INIT), lets libfuse answer it, and asks for passthrough in that answer. Returns
// why there is none, empty where there is. Throws kIo where the kernel does not take the answer.
std::string begin_passthrough(fuse_session* session);

// The same for libfuse 3.17 and later, from its callback for INIT; does nothing before.
void want_passthrough(fuse_conn_info* conn);

// The kernel's number of `fd` (which may be closed then) as a backing file, > 0; or -errno: EPERM
// without CAP_SYS_ADMIN or where the kernel was not asked at INIT, ELOOP for a file on a file
// system that lies on another one. It holds until it is closed, or the unmount. Any thread.
std::int32_t open_backing(fuse_session* session, int fd);
// Files that were opened with it stay as they are. Any thread.
void close_backing(fuse_session* session, std::int32_t backing);

// Answers an OPEN: mapped and, without direct_io, read from the backing file. keep_cache must not
// be set. Returns what fuse_reply_open() does.
int reply_open_backed(fuse_req* request, const fuse_file_info& file, std::int32_t backing);

}  // namespace npyfs
