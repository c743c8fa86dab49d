// SPDX-License-Identifier: Apache-2.0

#include "fs/forest.h"

#include <fmt/format.h>

#include <utility>

#include "formats/arrays/view.h"
#include "formats/bytes/error.h"
#include "fs/log.h"

namespace npyfs {

Forest::Forest(const Dataset& dataset, std::uint64_t header_align, const StatusTexts& status)
    : dataset_(dataset), header_align_(header_align) {
  trees_[0] = std::make_unique<const Tree>(dataset, header_align, status);
  count_.store(1, std::memory_order_release);
}

std::optional<Ino> Forest::lookup(Ino directory, std::string_view name) {
  if (directory == Tree::kRoot && name.starts_with('@')) {
    return find_view(name);
  }
  const Tree* tree = tree_of(directory);
  return tree != nullptr ? tree->lookup(directory, name) : std::nullopt;
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
  const MutexLock lock(mutex_);
  const auto known = known_view(name);
  return known ? *known : add_view(name, shown);
}

std::optional<Ino> Forest::known_view(std::string_view name) const {
  const auto known = views_.find(name);
  if (known != views_.end()) {
    return known->second;
  }
  if (views_.size() >= kMostViews) {
    throw Error(ErrorKind::kTooLarge,
                fmt::format("{}: {} views have been opened, expected no more; mount again",
                            printable(name), kMostViews));
  }
  return std::nullopt;
}

Ino Forest::add_view(std::string_view name, const Dataset& shown) {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  const Ino root = Tree::kRoot + count * Tree::kNumbers;
  trees_[count] =
      std::make_unique<const Tree>(shown, header_align_, ViewRoot{root, std::string(name)});
  count_.store(count + 1, std::memory_order_release);
  views_.emplace(name, root);
  return root;
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

const Tree* Forest::tree_of(Ino ino) const {
  const Ino number = ino / Tree::kNumbers;
  return number < count_.load(std::memory_order_acquire) ? trees_[number].get() : nullptr;
}

std::optional<Entry> Forest::find(Ino ino) const {
  const Tree* tree = tree_of(ino);
  return tree != nullptr ? tree->find(ino) : std::nullopt;
}

std::string Forest::path(Ino ino) const {
  const Tree* tree = tree_of(ino);
  return tree != nullptr ? tree->path(ino) : "?";
}

void Forest::for_each_fed(const std::function<void(const FedFiles&)>& visit) const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    trees_[i]->for_each_fed(visit);
  }
}

}  // namespace npyfs
