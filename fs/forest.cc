// SPDX-License-Identifier: Apache-2.0

#include "fs/forest.h"

#include <fmt/format.h>

#include <utility>

#include "formats/arrays/view.h"
#include "formats/bytes/error.h"
#include "fs/log.h"

namespace npyfs {

namespace {

// What the second number of a file has beside its first one: no tree has numbers so high.
constexpr Ino kSecond = Ino{1} << 62;
static_assert(Tree::kNumbers * (Forest::kMostViews + 1) <= kSecond);

Ino first_number(Ino ino) { return ino & ~kSecond; }

}  // namespace

struct Forest::LiveView {
  LiveView(const Dataset& shown, std::uint64_t header_align, ViewRoot root)
      : tree(shown, header_align, root), name(std::move(root.name)) {}

  const Tree tree;
  const std::string name;
  // How many numbers the kernel knows, each as often as it was told. Rises from 0 only under the
  // forest's lock.
  std::atomic<std::uint64_t> known{1};
  // Under the forest's lock.
  std::uint64_t open = 0;
  bool is_idle = true;
  std::list<LiveView*>::iterator at{};  // in idle_ or in others_
};

Forest::Forest(const Dataset& dataset, std::uint64_t header_align, const StatusTexts& status,
               std::function<void()> on_news)
    : dataset_(dataset),
      header_align_(header_align),
      on_news_(std::move(on_news)),
      tree_(dataset, header_align, status),
      by_number_(1 + kMostViews) {}

Forest::~Forest() = default;

Forest::LiveView* Forest::view_of(Ino ino) const {
  const Ino number = ino / Tree::kNumbers;
  return number < by_number_.size() ? by_number_[number].load(std::memory_order_acquire) : nullptr;
}

const Tree* Forest::tree_of(Ino ino) const {
  if (first_number(ino) < Tree::kNumbers) {
    return &tree_;
  }
  const LiveView* view = view_of(ino);
  return view != nullptr ? &view->tree : nullptr;
}

std::optional<Entry> Forest::find(Ino ino) const {
  const Tree* tree = tree_of(ino);
  return tree != nullptr ? tree->find(first_number(ino)) : std::nullopt;
}

std::string Forest::path(Ino ino) const {
  const Tree* tree = tree_of(ino);
  return tree != nullptr ? tree->path(first_number(ino)) : "?";
}

std::optional<Entry> Forest::plain_entry(Ino ino) const {
  const LiveView* view = view_of(ino);
  if (view == nullptr) {
    return std::nullopt;
  }
  if (ino == view->tree.root()) {
    return tree_.find(Tree::kRoot);
  }
  const auto entry = view->tree.find(ino);
  const auto folder = entry ? plain_entry(entry->parent()) : std::nullopt;
  const auto found = folder ? tree_.lookup(folder->ino(), entry->name()) : std::nullopt;
  return found ? tree_.find(*found) : std::nullopt;
}

std::optional<Ino> Forest::lookup(Ino directory, std::string_view name) {
  if (directory == Tree::kRoot && name.starts_with('@')) {
    return find_view(name);
  }
  const Tree* tree = tree_of(directory);
  const auto found = tree != nullptr ? tree->lookup(directory, name) : std::nullopt;
  if (!found) {
    return std::nullopt;
  }
  remember(*found);
  return known_number(*found);
}

void Forest::remember(Ino ino) {
  if (LiveView* view = view_of(ino)) {
    view->known.fetch_add(1, std::memory_order_relaxed);
  }
}

std::vector<std::uint64_t> Forest::forget(Ino ino, std::uint64_t count) {
  LiveView* view = view_of(ino);
  if (view == nullptr || view->known.fetch_sub(count, std::memory_order_acq_rel) != count) {
    return {};
  }
  // From here on others may look the view up, forget and take it.
  const auto taken = take_unless_known(ino);
  return taken != nullptr ? taken->tree.own_chunks() : std::vector<std::uint64_t>();
}

std::shared_ptr<const Forest::LiveView> Forest::take_unless_known(Ino ino) {
  const MutexLock lock(mutex_);
  LiveView* view = view_of(ino);
  if (view == nullptr || view->known.load(std::memory_order_acquire) != 0) {
    return nullptr;
  }
  by_number_[ino / Tree::kNumbers].store(nullptr, std::memory_order_release);
  (view->is_idle ? idle_ : others_).erase(view->at);
  return std::move(views_.extract(view->name).mapped());
}

std::optional<Ino> Forest::find_view(std::string_view name) {
  const auto view = parse_view(name);
  if (!view) {
    return std::nullopt;
  }
  {
    const MutexLock lock(mutex_);
    if (const auto known = known_view(name)) {
      return known;
    }
  }
  ViewContext context;
  context.find_offsets = [this](const auto& pair) { return find_offsets(pair); };
  context.left_out = [&](const Error& why) {
    log_warning(fmt::format("{}: {}; left out of the view", printable(name), why.what()));
  };
  context.warn = [&](const std::string& text) {
    log_warning(fmt::format("{}: {}", printable(name), text));
  };
  // Not under the lock: offsets of stores may have to be read. Of two who make the same view the
  // second one's is thrown away.
  const Dataset shown = make_view(dataset_, *view, context);
  Ino root = 0;
  {
    const MutexLock lock(mutex_);
    const auto known = known_view(name);
    root = known ? *known : add_view(name, shown);
  }
  call_if_crowded();
  return root;
}

std::optional<Ino> Forest::known_view(std::string_view name) {
  const auto at = views_.find(name);
  if (at == views_.end()) {
    return std::nullopt;
  }
  LiveView& view = *at->second;
  view.known.fetch_add(1, std::memory_order_relaxed);
  if (view.open == 0) {
    set_idle(view);
  }
  return view.tree.root();
}

Ino Forest::add_view(std::string_view name, const Dataset& shown) {
  const std::size_t number = free_number();
  const auto view = std::make_shared<LiveView>(
      shown, header_align_, ViewRoot{number * Tree::kNumbers + Tree::kRoot, std::string(name)});
  std::list<LiveView*> place{view.get()};
  views_.emplace(name, view);
  view->at = place.begin();
  idle_.splice(idle_.end(), place);
  by_number_[number].store(view.get(), std::memory_order_release);
  return view->tree.root();
}

std::size_t Forest::free_number() {
  if (views_.size() >= kMostViews) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("{} views are in use, expected at most {}; close files of some",
                            views_.size(), kMostViews));
  }
  do {
    last_number_ = last_number_ % kMostViews + 1;
  } while (by_number_[last_number_].load(std::memory_order_relaxed) != nullptr);
  return last_number_;
}

// Also of one that is: it is the last to be named then.
void Forest::set_idle(LiveView& view) {
  idle_.splice(idle_.end(), view.is_idle ? idle_ : others_, view.at);
  view.is_idle = true;
}

void Forest::set_in_use(LiveView& view) {
  others_.splice(others_.end(), view.is_idle ? idle_ : others_, view.at);
  view.is_idle = false;
}

void Forest::note_open(Ino ino) {
  if (LiveView* view = view_of(ino)) {
    const MutexLock lock(mutex_);
    ++view->open;
    set_in_use(*view);
  }
}

void Forest::note_close(Ino ino) {
  if (LiveView* view = view_of(ino)) {
    {
      const MutexLock lock(mutex_);
      if (--view->open > 0) {
        return;
      }
      set_idle(*view);
    }
    call_if_crowded();
  }
}

void Forest::call_if_crowded() {
  {
    const MutexLock lock(mutex_);
    if (idle_.size() <= kMostIdle) {
      return;
    }
  }
  on_news_();
}

std::optional<std::string> Forest::pop_idle() {
  const MutexLock lock(mutex_);
  if (idle_.size() <= kMostIdle) {
    return std::nullopt;
  }
  LiveView& view = *idle_.front();
  set_in_use(view);
  return view.name;
}

void Forest::note_complete(Ino ino) {
  const Ino first = first_number(ino);
  const auto entry = tree_.find(first);
  if (!entry || entry->file() == nullptr || entry->name().empty()) {
    return;
  }
  {
    const MutexLock lock(complete_mutex_);
    if (!complete_.insert(first).second) {
      return;
    }
    completed_.push_back(first);
    any_complete_.store(true, std::memory_order_release);
  }
  on_news_();
}

Ino Forest::known_number(Ino ino) const {
  if (!any_complete_.load(std::memory_order_acquire)) {
    return ino;
  }
  const MutexLock lock(complete_mutex_);
  return complete_.count(ino) != 0 ? ino | kSecond : ino;
}

std::optional<std::pair<Ino, std::string>> Forest::pop_completed() {
  const MutexLock lock(complete_mutex_);
  if (completed_.empty()) {
    return std::nullopt;
  }
  const Entry entry = *tree_.find(completed_.back());
  completed_.pop_back();
  return std::pair(entry.parent(), entry.name());
}

// Read once for all views, outside the lock.
OffsetsPtr Forest::find_offsets(const std::shared_ptr<const RaggedPair>& pair) {
  {
    const MutexLock lock(mutex_);
    const auto known = offsets_.find(pair.get());
    if (known != offsets_.end()) {
      return known->second;
    }
  }
  OffsetsPtr offsets = read_offsets(*pair);
  const MutexLock lock(mutex_);
  return offsets_.emplace(pair.get(), std::move(offsets)).first->second;
}

void Forest::for_each_fed(const std::function<void(const FedFiles&)>& visit) const {
  tree_.for_each_fed(visit);
  std::vector<std::shared_ptr<const LiveView>> views;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, view] : views_) {
      views.push_back(view);
    }
  }
  for (const auto& view : views) {
    view->tree.for_each_fed(visit);
  }
}

std::size_t Forest::count_views() const {
  const MutexLock lock(mutex_);
  return views_.size();
}

}  // namespace npyfs
