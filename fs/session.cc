// SPDX-License-Identifier: Apache-2.0

#include "fs/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <thread>

#include "fs/damage_log.h"
#include "fs/fetch.h"
#include "fs/fuse_ops.h"
#include "fs/log.h"
#include "fs/mutex.h"
#include "fs/tree.h"

namespace npyfs {

namespace {

struct SessionDeleter {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
using SessionPtr = std::unique_ptr<fuse_session, SessionDeleter>;

// A scope that ends with an action.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> action) : action_(std::move(action)) {}
  ~AtEnd() { action_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  std::function<void()> action_;
};

// Drops what the kernel has cached of files whose source has changed. A thread of its own: the
// kernel may hold a page of the very file while it waits for a reader's answer.
class CacheDropper {
 public:
  CacheDropper(fuse_session* session, const Tree& tree)
      : session_(session), tree_(tree), thread_([this] { run(); }) {}

  ~CacheDropper() {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  CacheDropper(const CacheDropper&) = delete;
  CacheDropper& operator=(const CacheDropper&) = delete;

  void wake() {
    {
      const MutexLock lock(mutex_);
      pending_ = true;
    }
    wake_.notify_all();
  }

 private:
  void run() {
    for (;;) {
      {
        const MutexLock lock(mutex_);
        while (!pending_ && !stop_) {
          wake_.wait(mutex_);
        }
        if (stop_) {
          return;
        }
        pending_ = false;
      }
      drop();
    }
  }

  static bool fed_by_changed(const std::vector<SourcePtr>& sources) {
    return std::any_of(sources.begin(), sources.end(),
                       [](const SourcePtr& source) { return source->changed(); });
  }

  void drop() {
    for (const auto& node : tree_.nodes()) {
      if (node->npy != nullptr && fed_by_changed(node->npy->array().sources)) {
        fuse_lowlevel_notify_inval_inode(session_, node->ino, 0, 0);
      } else if (node->records != nullptr && fed_by_changed(node->records->sources())) {
        // The kernel answers ENOENT at once for the files it does not know.
        for (std::uint64_t file = 0; file < node->records->count(); ++file) {
          fuse_lowlevel_notify_inval_inode(session_, tree_.record_ino(*node, file), 0, 0);
        }
      }
    }
  }

  fuse_session* session_;
  const Tree& tree_;
  Mutex mutex_;
  Condition wake_;
  bool pending_ GUARDED_BY(mutex_) = false;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A comma or a backslash in an option's value would end it.
std::string escape_option(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

SessionPtr make_session(const MountOptions& options, MountedFs& fs) {
  std::string list = "ro,default_permissions,subtype=npyfs,fsname=" + escape_option(options.source);
  for (const std::string& option : options.fuse_options) {
    list += "," + option;
  }
  const char* arguments[] = {"npyfs", "-o", list.c_str()};
  fuse_args args = FUSE_ARGS_INIT(3, const_cast<char**>(arguments));
  SessionPtr session(fuse_session_new(&args, &fuse_ops(), sizeof(fuse_lowlevel_ops), &fs));
  fuse_opt_free_args(&args);
  if (session == nullptr) {
    throw Error(ErrorKind::kUsage, fmt::format("-o {}: not accepted by libfuse", list));
  }
  return session;
}

int run_loop(fuse_session* session, unsigned threads) {
  if (threads == 1) {
    return fuse_session_loop(session);
  }
  const std::unique_ptr<fuse_loop_config, decltype(&fuse_loop_cfg_destroy)> config(
      fuse_loop_cfg_create(), fuse_loop_cfg_destroy);
  // A descriptor a thread, so that they do not queue for one.
  fuse_loop_cfg_set_clone_fd(config.get(), 1);
  const unsigned cores = std::thread::hardware_concurrency();
  const unsigned most = threads != 0 ? threads : std::max(4U, cores);
  fuse_loop_cfg_set_max_threads(config.get(), most);
  fuse_loop_cfg_set_idle_threads(config.get(), most);
  return fuse_session_loop_mt(session, config.get());
}

}  // namespace

int serve_dataset(const Dataset& dataset, ChunkCache& cache, VerifiedRecords& verified,
                  const MountOptions& options) {
  const Tree tree(dataset, options.header_align);
  const Fetcher fetcher(cache, verified);
  DamageLog damage;
  std::unique_ptr<CacheDropper> dropper;
  MountedFs fs{tree, fetcher, damage, ::getuid(), ::getgid(), [&dropper] { dropper->wake(); }};

  const SessionPtr session = make_session(options, fs);
  if (fuse_session_mount(session.get(), options.mountpoint.c_str()) != 0) {
    // libfuse has said why on stderr.
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot mount there", options.mountpoint));
  }
  const AtEnd unmount([&session] { fuse_session_unmount(session.get()); });
  if (fuse_set_signal_handlers(session.get()) != 0) {
    throw Error(ErrorKind::kIo, "cannot set signal handlers");
  }
  const AtEnd restore([&session] { fuse_remove_signal_handlers(session.get()); });

  const bool foreground = options.foreground || options.debug;
  // The caller's process ends here with 0, if not in the foreground; threads start only after it.
  if (fuse_daemonize(foreground ? 1 : 0) != 0) {
    throw Error(ErrorKind::kIo, "cannot become a daemon");
  }
  open_log(foreground ? LogTarget::kStderr : LogTarget::kSyslog, options.debug);
  dropper = std::make_unique<CacheDropper>(session.get(), tree);
  const int ended = run_loop(session.get(), options.threads);
  dropper.reset();
  // A positive number is the signal that ended the loop: that is how one stops a mount.
  return ended < 0 ? 1 : 0;
}

}  // namespace npyfs
