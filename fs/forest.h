// SPDX-License-Identifier: Apache-2.0
//
// The mount's tree and those of its views: a directory @shuffle=7,part=3of16 at the top is not
// listed, but there for who asks for it by name.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/arrays/dataset.h"
#include "formats/arrays/ragged.h"
#include "fs/mutex.h"
#include "fs/tree.h"

namespace npyfs {

// Any thread. Trees are added, and stay: the kernel may ask for their numbers at any time, and the
// cache knows what they hold by its address.
class Forest {
 public:
  static constexpr std::size_t kMostViews = 1000;

  // `dataset` must outlive it.
  Forest(const Dataset& dataset, std::uint64_t header_align, const StatusTexts& status = {});

  // As those of Tree. lookup() makes the view that a name in the root stands for; throws kTooLarge
  // after kMostViews of them.
  std::optional<Entry> find(Ino ino) const;
  std::optional<Ino> lookup(Ino directory, std::string_view name);
  std::string path(Ino ino) const;

  void for_each_fed(const std::function<void(const FedFiles&)>& visit) const;
  // Of what is listed; views add nothing.
  std::uint64_t total_nbytes() const { return trees_[0]->total_nbytes(); }
  std::uint64_t total_files() const { return trees_[0]->total_files(); }

 private:
  // Null where there is none.
  const Tree* tree_of(Ino ino) const;
  std::optional<Ino> find_view(std::string_view name);
  // Throws kTooLarge where there is none of that name and room for no more.
  std::optional<Ino> known_view(std::string_view name) const REQUIRES(mutex_);
  Ino add_view(std::string_view name, const Dataset& shown) REQUIRES(mutex_);
  OffsetsPtr find_offsets(const std::shared_ptr<const RaggedPair>& pair);

  const Dataset& dataset_;
  std::uint64_t header_align_;
  // The i-th has the numbers from i * Tree::kNumbers on; is read without a lock once count_
  // includes it.
  std::array<std::unique_ptr<const Tree>, 1 + kMostViews> trees_;
  std::atomic<std::size_t> count_{0};
  Mutex mutex_;
  std::map<std::string, Ino, std::less<>> views_ GUARDED_BY(mutex_);
  // Of ragged arrays of stores, once somebody has wanted a view; pairs live as long as dataset_.
  std::map<const RaggedPair*, OffsetsPtr> offsets_ GUARDED_BY(mutex_);
};

}  // namespace npyfs
