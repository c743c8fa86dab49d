// SPDX-License-Identifier: Apache-2.0

#include "fs/session.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "fs/background_fill.h"
#include "fs/damage_log.h"
#include "fs/end_signals.h"
#include "fs/fetch.h"
#include "fs/forest.h"
#include "fs/fuse_ops.h"
#include "fs/libfuse_log.h"
#include "fs/log.h"
#include "fs/native_files.h"
#include "fs/notifier.h"
#include "fs/passthrough.h"
#include "fs/read_ahead.h"
#include "fs/request_stats.h"
#include "fs/stats.h"
#include "fs/take_figures.h"

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
    list += "," + escape_option(option);
  }
  const char* arguments[] = {"npyfs", "-o", list.c_str()};
  fuse_args args = FUSE_ARGS_INIT(3, const_cast<char**>(arguments));
  SessionPtr session(fuse_session_new(&args, &fuse_ops(), sizeof(fuse_lowlevel_ops), &fs));
  fuse_opt_free_args(&args);
  if (session == nullptr) {
    throw Error(ErrorKind::kUsage, fmt::format("-o {}: {}", list, libfuse_said()));
  }
  return session;
}

// The first question is answered here where passthrough is to be asked for, by the loop otherwise.
NativeFiles make_native_files(fuse_session* session, const MountOptions& options,
                              const std::string& why_not) {
  if (!options.passthrough) {
    return NativeFiles(NativeFiles::Refusal{"-o no_passthrough", false});
  }
  const std::string why = why_not.empty() ? begin_passthrough(session) : why_not;
  if (!why.empty()) {
    return NativeFiles(NativeFiles::Refusal{why});
  }
  return NativeFiles(
      BackingCalls{[session](int fd) { return open_backing(session, fd); },
                   [session](std::int32_t backing) { close_backing(session, backing); }});
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

// More than the cores decode nothing faster.
unsigned read_ahead_threads(unsigned threads) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  return threads != 0 ? std::min(threads, cores) : cores;
}

// glibc gives every thread a heap of its own, and none is returned while something at its end is in
// use: with decoders' buffers in them that was several times the cache.
void keep_heap_small() {
  ::mallopt(M_ARENA_MAX, 1);
  // Set, it does not grow with what is freed.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
}

}  // namespace

int serve_dataset(const Dataset& dataset, BlockCache& cache, VerifiedRecords& verified,
                  const MountOptions& options) {
  DamageLog damage;
  RequestStats stats;
  std::unique_ptr<Notifier> notifier;
  const MountBegin begin{options.version, options.mountpoint, options.opening_s, options.index};
  const MountedFs* mounted = nullptr;  // asked once it serves
  const StatusTexts texts = {
      {kErrorsFile, [&] { return damage.lines(); }},
      {kStatsFile, [&] { return stats_json(take_figures(*mounted, begin)); }},
      {kMetricsFile, [&] { return stats_metrics(take_figures(*mounted, begin)); }}};
  Forest tree(dataset, options.header_align, texts, [&notifier] { notifier->note_news(); });
  const Fetcher fetcher(cache, verified);
  OpenFiles open_files;
  MountedFs fs{tree,       fetcher,    cache,
               damage,     stats,      open_files,
               ::getuid(), ::getgid(), [&notifier] { notifier->note_change(); }};
  mounted = &fs;
  const std::string why_not_native = why_no_passthrough();
  fs.wants_passthrough = options.passthrough && why_not_native.empty();

  take_libfuse_lines();
  const SessionPtr session = make_session(options, fs);
  // Before there is a mount that a signal could leave behind, until it is gone.
  EndSignals signals(session.get());
  if (fuse_session_mount(session.get(), options.mountpoint.c_str()) != 0) {
    throw file_error(ErrorKind::kIo, options.mountpoint, "cannot mount there: " + libfuse_said());
  }
  // The notifier's thread ends after the unmount, which is what it may be waiting for.
  const AtEnd join([&notifier] { notifier.reset(); });
  const AtEnd unmount([&session, &notifier] {
    if (notifier != nullptr) {
      notifier->begin_stop();
    }
    fuse_session_unmount(session.get());
  });

  NativeFiles native = make_native_files(session.get(), options, why_not_native);
  fs.native = &native;

  const bool foreground = options.foreground || options.debug;
  // The caller's process ends here with 0, if not in the foreground; threads start only after it.
  if (!foreground && signals.is_pending()) {
    // It would stay behind in the process that ends.
    throw Error(ErrorKind::kIo, options.mountpoint + ": a signal ended the mount", EINTR);
  }
  if (fuse_daemonize(foreground ? 1 : 0) != 0) {
    throw Error(ErrorKind::kIo, "cannot become a daemon");
  }
  keep_heap_small();
  open_log(foreground ? LogTarget::kStderr : LogTarget::kSyslog, options.debug);
  const LibfuseLines libfuse_lines;
  notifier = std::make_unique<Notifier>(session.get(), tree);
  // Verifying a record of terabytes must not keep a mount from ending. libfuse takes its flag back
  // when the loop has ended.
  std::atomic<bool> ending{false};
  verified.set_proceed([&session, &ending] {
    if (ending || fuse_session_exited(session.get()) != 0) {
      throw Error(ErrorKind::kIo, "the mount is ending", EINTR);
    }
  });
  const AtEnd forget([&verified] { verified.set_proceed(nullptr); });
  std::optional<KeptArrays> kept;
  if (options.keep) {
    kept.emplace(*options.keep, [&tree, &native](Ino ino) {
      if (native.are_possible()) {
        tree.note_complete(ino);
      }
    });
    fs.kept = &*kept;
  }
  std::optional<BackgroundFill> fill;
  if (kept && kept->writes()) {
    fill.emplace(fs, verified,
                 options.fill ? BackgroundFill::What::kAll : BackgroundFill::What::kWanted);
    fs.on_much_read = [&fill](Ino ino) { fill->complete_later(ino); };
  }
  ReadAhead read_ahead(cache, read_ahead_threads(options.threads));
  fs.read_ahead = &read_ahead;
  signals.watch([&] {
    ending = true;
    notifier->stop();
  });
  const int ended = run_loop(session.get(), options.threads);
  ending = true;
  signals.finish();
  if (ended < 0) {
    log_error(fmt::format("{}: serving ended: {}", options.mountpoint, libfuse_said()));
    return 1;
  }
  return 0;
}

}  // namespace npyfs
