// SPDX-License-Identifier: Apache-2.0
//
// The mount's tree and those of its views: a directory @shuffle=7,part=3of16 at the top is not
// listed, but there for who asks for it by name.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/arrays/dataset.h"
#include "formats/arrays/ragged.h"
#include "fs/tree.h"
#include "threads/mutex.h"

namespace npyfs {

// Any thread. A view is made when its name is looked up. It goes, and its memory with it, when the
// kernel no longer knows any of its numbers; so these are counted as the kernel learns and forgets
// them. Numbers of a view that has gone are given to a later one, after all others.
//
// The kernel keeps what it knows until it is short of memory, whether somebody uses it or not, and
// whatever the timeouts say: 400 shuffled views of 30,000 ragged records, each opened and closed,
// left the daemon at 106 MB, with entry timeouts of 0 as with endless ones (Linux 6.18). Therefore
// pop_idle() names views that are idle (nothing of them is open) while there are more than
// kMostIdle, for the kernel to be asked to let go of them; with this it stays at 16 MB.
class Forest {
 public:
  // At once.
  static constexpr std::size_t kMostViews = (std::size_t{1} << 14) - 1;
  // A reader that cycles through this many views finds each one still there. More would cost
  // memory: one view may take 8 bytes for each of 10^8 records.
  static constexpr std::size_t kMostIdle = 16;

  // `dataset` must outlive it. `on_news` is called when there is something for pop_idle() or
  // pop_completed(), with no lock held; it must not wait.
  Forest(
      const Dataset& dataset, std::uint64_t header_align, const StatusTexts& status = {},
      std::function<void()> on_news = [] {});
  ~Forest();

  // As those of Tree, without a lock. An entry of a view is there as long as the kernel knows its
  // number, which it does until what it has asked about it is answered.
  std::optional<Entry> find(Ino ino) const;
  std::string path(Ino ino) const;
  // Whether it is the mount's own, not a view's.
  bool is_plain(Ino ino) const { return view_of(ino) == nullptr; }
  // The mount's own entry that has the same path below the mount as an entry of a view has below
  // the view's directory. Nothing where there is none.
  std::optional<Entry> plain_entry(Ino ino) const;

  // As that of Tree; makes the view that a name in the root stands for. The number is counted as
  // known to the kernel. Throws kTooLarge while there are kMostViews. It is known_number() of the
  // entry.
  std::optional<Ino> lookup(Ino directory, std::string_view name);
  // The kernel will know one more number of the tree that has `ino`.
  void remember(Ino ino);
  // It knows `count` less. Returns the serials of the sources of chunks that have gone with a view.
  std::vector<std::uint64_t> forget(Ino ino, std::uint64_t count);

  // A file or directory is opened, once for each that is closed.
  void note_open(Ino ino);
  void note_close(Ino ino);

  // The name of the view that has been idle for longest, where too many are. It is not named again
  // unless it has been used since.
  std::optional<std::string> pop_idle();

  // An array has got a backing file while the mount serves: `ino` is either of its numbers. The
  // kernel reads a file in one way as long as it knows its number, so that from now on the name
  // leads to a second one; who has the first one open reads on as before. Entry::ino() is the first
  // one for both, and so is st_ino. Does nothing the second time, for directories, for files of
  // records, and for those of views, which are not kept.
  void note_complete(Ino ino);
  // The number by which the kernel is to know an entry from now on: its second one, if it has one.
  Ino known_number(Ino ino) const;
  // An array that note_complete() was called for since: directory and name, which the kernel is to
  // let go of.
  std::optional<std::pair<Ino, std::string>> pop_completed();

  void for_each_fed(const std::function<void(const FedFiles&)>& visit) const;
  // Of what is listed; views add nothing.
  std::uint64_t total_nbytes() const { return tree_.total_nbytes(); }
  std::uint64_t total_files() const { return tree_.total_files(); }
  std::size_t count_views() const;

 private:
  struct LiveView;

  // Null: the number is the mount's own, or none.
  LiveView* view_of(Ino ino) const;
  // Null: none.
  const Tree* tree_of(Ino ino) const;
  std::optional<Ino> find_view(std::string_view name);
  OffsetsPtr find_offsets(const std::shared_ptr<const RaggedPair>& pair);

  // These two count the number that they return as known to the kernel.
  std::optional<Ino> known_view(std::string_view name) REQUIRES(mutex_);
  Ino add_view(std::string_view name, const Dataset& shown) REQUIRES(mutex_);
  std::size_t free_number() REQUIRES(mutex_);
  std::shared_ptr<const LiveView> take_unless_known(Ino ino);
  void set_idle(LiveView& view) REQUIRES(mutex_);
  void set_in_use(LiveView& view) REQUIRES(mutex_);
  void call_if_crowded();

  const Dataset& dataset_;
  const std::uint64_t header_align_;
  const std::function<void()> on_news_;
  const Tree tree_;
  // The i-th view has the numbers from i * Tree::kNumbers on; null: there is none. Written under
  // the lock, read without.
  std::vector<std::atomic<LiveView*>> by_number_;

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<LiveView>, std::less<>> views_ GUARDED_BY(mutex_);
  // Each view is in one of these. Those that are idle by when they were used last, but those that
  // pop_idle() has named.
  std::list<LiveView*> idle_ GUARDED_BY(mutex_);
  std::list<LiveView*> others_ GUARDED_BY(mutex_);
  std::size_t last_number_ GUARDED_BY(mutex_) = 0;
  // Of ragged arrays of stores, once somebody has wanted a view; pairs live as long as dataset_.
  std::map<const RaggedPair*, OffsetsPtr> offsets_ GUARDED_BY(mutex_);

  // Asked by every lookup.
  std::atomic<bool> any_complete_ = false;
  mutable Mutex complete_mutex_;
  // First numbers; and those that pop_completed() has not named yet.
  std::unordered_set<Ino> complete_ GUARDED_BY(complete_mutex_);
  std::vector<Ino> completed_ GUARDED_BY(complete_mutex_);
};

}  // namespace npyfs
