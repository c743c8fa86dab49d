// SPDX-License-Identifier: Apache-2.0

#include "fs/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/arrays/view.h"
#include "formats/bytes/error.h"
#include "fs/log.h"

namespace npyfs {

Forest::Forest(const Dataset& dataset, std::uint64_t header_align)
    : dataset_(dataset), header_align_(header_align) {
  trees_[0] = std::make_unique<const Tree>(dataset, header_align);
  count_.store(1, std::memory_order_release);
}

std::optional<Ino> Forest::lookup(Ino directory, std::string_view name) {
  if (directory == Tree::kRoot && name.starts_with('@')) {
    return find_view(name);
  }
  return tree_of(directory).lookup(directory, name);
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
  const Tree& last = *trees_[count - 1];
  const Ino root = last.root() + last.nodes().size();
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

const Tree& Forest::tree_of(Ino ino) const {
  const Ino number = Tree::node_of(ino);
  const auto begin = trees_.begin() + 1;
  const auto end =
      trees_.begin() + static_cast<std::ptrdiff_t>(count_.load(std::memory_order_acquire));
  const auto behind = std::upper_bound(
      begin, end, number, [](Ino wanted, const auto& tree) { return wanted < tree->root(); });
  return **(behind - 1);
}

std::string Forest::path(Ino ino) const { return tree_of(ino).path(ino); }

void Forest::for_each_node(const std::function<void(const Node&)>& visit) const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto& node : trees_[i]->nodes()) {
      visit(*node);
    }
  }
}

}  // namespace npyfs
