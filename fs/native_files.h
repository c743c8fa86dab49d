// SPDX-License-Identifier: Apache-2.0
//
// Which files of the mount the kernel reads by itself, and why it does not read the others.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "fs/file.h"
#include "kept/kept_array.h"
#include "threads/mutex.h"

namespace npyfs {

// The kernel's side of it, as fs/passthrough.h has it. Any thread.
struct BackingCalls {
  std::function<std::int32_t(int fd)> open;  // the number of a backing file, > 0, or -errno
  std::function<void(std::int32_t backing)> close;
};

// Any thread. How the file of an inode number is read is decided when it is first opened and then
// holds for the mount: the kernel does not open one in both ways at a time.
class NativeFiles {
 public:
  // Why the kernel reads none of them. Who did not want it needs no line in the log.
  struct Refusal {
    std::string why;
    bool is_wanted = true;
  };

  explicit NativeFiles(BackingCalls kernel) : kernel_(std::move(kernel)) {}
  explicit NativeFiles(Refusal refusal) : refusal_(std::move(refusal)) {}

  // The kernel's number of the backing file for `file`, which is opened under the number `ino`: the
  // source that it is, or `kept`, where it is kept (else null) and complete. 0: we read it, and go
  // on to do so.
  std::int32_t open(Ino ino, const File& file, const KeptArray* kept = nullptr);
  // We read the file of this number, now and later, though it may have got a backing file by then.
  // Returns 0, or what open() has given for it before.
  std::int32_t decline(Ino ino) { return decide(ino, 0); }
  // Whether the kernel reads any file by itself.
  bool are_possible() const { return !refusal_; }
  // Why not; empty where it does.
  std::string why_not() const { return refusal_ ? refusal_->why : ""; }
  // What is known already, without asking anybody.
  struct Known {
    bool is_native = false;
    std::string why_not;
  };
  std::optional<Known> find_known(Ino ino) const;
  // Whether open() gave, or would give, one.
  bool is_native(Ino ino, const File& file, const KeptArray* kept = nullptr);

 private:
  std::int32_t find(Ino ino, const File& file, const KeptArray* kept);
  std::optional<std::int32_t> decided(Ino ino);
  std::int32_t decide(Ino ino, std::int32_t backing);
  std::int32_t ask_kernel(Ino ino, const File& file, int fd);
  // Remembers why we read the file; the first time it is told in the log.
  void note_refusal(Ino ino, const File& file, const std::string& why);

  const BackingCalls kernel_{};
  const std::optional<Refusal> refusal_{};
  mutable Mutex mutex_;
  // The backing file's number for each file that has one or may get one; 0: we read the file.
  std::unordered_map<Ino, std::int32_t> decided_ GUARDED_BY(mutex_);
  std::unordered_map<Ino, std::string> refused_ GUARDED_BY(mutex_);  // and why
  bool told_ GUARDED_BY(mutex_) = false;
};

}  // namespace npyfs
