// SPDX-License-Identifier: Apache-2.0

#include "fs/kept_arrays.h"

#include <fmt/format.h>

#include <algorithm>

namespace npyfs {

namespace {

// A smaller array is read faster than its files are opened.
constexpr std::uint64_t kLeastNbytes = std::uint64_t{16} << 10;

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::span<const std::byte> header_of(const File& file) {
  return std::as_bytes(std::span(dynamic_cast<const NpyFile&>(file).header()));
}

// "train/x.npy", or "*/x.npy" where "train" is but a name: no split is called so.
std::string place_of(const std::string& path, const std::string& only_split) {
  return only_split.empty() || !path.starts_with(only_split + "/")
             ? path
             : "*" + path.substr(only_split.size());
}

std::string label_text(const std::string& path, const NamedArray& array) {
  return path + "\n" + (array.sources.empty() ? "" : array.sources.front()->path());
}

}  // namespace

std::optional<NotKept> why_not_kept(const File& file) {
  const auto* npy = dynamic_cast<const NpyFile*>(&file);
  if (npy == nullptr) {
    return NotKept{"", true};
  }
  if (npy->is_source()) {
    return NotKept{"a .npy file already", true};
  }
  if (npy->nbytes() < kLeastNbytes) {
    return NotKept{fmt::format("smaller than {} KiB", kLeastNbytes >> 10), true};
  }
  if (npy->array().array->storage() == "computed") {
    return NotKept{"computed, which is as fast", true};
  }
  if (!npy->knows_its_files()) {
    return NotKept{"of more files than are looked at when a source is opened"};
  }
  return std::nullopt;
}

std::optional<KeptKey> kept_key(const KeepOptions& options, const std::string& path,
                                const File& file) {
  if (why_not_kept(file)) {
    return std::nullopt;
  }
  const auto& npy = dynamic_cast<const NpyFile&>(file);
  const NamedArray& array = npy.array();
  std::vector<Identity> sources;
  sources.reserve(array.sources.size());
  for (const SourcePtr& source : array.sources) {
    sources.push_back(source->identity());
  }
  return KeyWriter()
      .add("version", options.version)
      .add("path", place_of(path, options.only_split))
      .add("format", array.format)
      .add("header", npy.header())
      .add("dataset", text_of(options.dataset))
      .add_sources(sources)
      .finish(label_text(path, array));
}

KeptLabel parse_label(std::string_view label) {
  const std::size_t end = std::min(label.find('\n'), label.size());
  return {std::string(label.substr(0, end)),
          std::string(label.substr(std::min(end + 1, label.size())))};
}

std::shared_ptr<KeptArray> open_kept(const KeepOptions& options, const std::string& path,
                                     const File& file) {
  const auto key = kept_key(options, path, file);
  return key ? options.folder->open(*key, file.nbytes(), header_of(file)) : nullptr;
}

std::shared_ptr<KeptArray> find_kept(const KeepOptions& options, const std::string& path,
                                     const File& file) {
  const auto key = kept_key(options, path, file);
  return key ? options.folder->find(*key, file.nbytes()) : nullptr;
}

KeptArrays::KeptArrays(const KeepOptions& options, std::function<void(Ino)> on_complete)
    : options_(options), on_complete_(std::move(on_complete)) {
  if (!options_.folder->is_read_only()) {
    FillOptions fill;
    fill.on_complete = [this](const std::shared_ptr<KeptArray>& array) { note_complete(array); };
    queue_.emplace(std::move(fill));
  }
}

KeptArrays::~KeptArrays() {
  if (queue_) {
    queue_->drain();
  }
}

std::shared_ptr<KeptArray> KeptArrays::open(Ino ino, const std::string& path, const File& file) {
  if (why_not_kept(file)) {
    return nullptr;
  }
  const std::shared_ptr<Mutex> looking = looking_for(ino);
  const MutexLock lock(*looking);
  auto array = find_known(ino);
  if (array != nullptr) {
    array->refresh();
  } else {
    array = queue_ ? open_kept(options_, path, file) : find_kept(options_, path, file);
    if (array != nullptr && queue_ && array->needs_check()) {
      queue_->check_later(array);
    }
  }
  if (array != nullptr) {
    remember(ino, looking, array);
  }
  return array;
}

std::shared_ptr<KeptArray> KeptArrays::find_complete(Ino ino, const std::string& path,
                                                     const File& file) {
  if (why_not_kept(file)) {
    return nullptr;
  }
  const std::shared_ptr<Mutex> looking = looking_for(ino);
  const MutexLock lock(*looking);
  auto array = find_known(ino);
  if (array != nullptr) {
    array->refresh();
  } else if ((array = find_kept(options_, path, file)) != nullptr) {
    remember(ino, looking, array);
  }
  return array != nullptr && array->is_complete() ? array : nullptr;
}

KeptArrays::Seen KeptArrays::last_seen(Ino ino) const {
  const MutexLock lock(mutex_);
  const auto known =
      std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.ino == ino; });
  return {known != known_.end() ? known->array.lock() : nullptr, complete_.contains(ino)};
}

void KeptArrays::note_complete(const std::shared_ptr<KeptArray>& array) {
  Ino ino = 0;
  {
    const MutexLock lock(mutex_);
    for (Known& known : known_) {
      if (known.array.lock() == array) {
        ino = known.ino;
        known.held = nullptr;
        complete_.insert(ino);
      }
    }
  }
  if (ino != 0) {
    on_complete_(ino);
  }
}

std::shared_ptr<Mutex> KeptArrays::looking_for(Ino ino) {
  const MutexLock lock(mutex_);
  const auto known =
      std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.ino == ino; });
  if (known != known_.end()) {
    known_.splice(known_.begin(), known_, known);
    return known->looking;
  }
  known_.push_front({ino, std::make_shared<Mutex>()});
  if (known_.size() > kMostKnown) {
    known_.pop_back();
  }
  return known_.front().looking;
}

// Null, too, where it was dropped, so that it is made anew.
std::shared_ptr<KeptArray> KeptArrays::find_known(Ino ino) {
  const MutexLock lock(mutex_);
  for (const Known& known : known_) {
    if (known.ino == ino) {
      auto array = known.array.lock();
      return array == nullptr || array->is_dropped() ? nullptr : array;
    }
  }
  return nullptr;
}

void KeptArrays::remember(Ino ino, const std::shared_ptr<Mutex>& looking,
                          const std::shared_ptr<KeptArray>& array) {
  // What is let go of here may close files.
  const bool is_complete = array->is_complete();
  Known known{ino, looking, array, is_complete ? nullptr : array};
  const MutexLock lock(mutex_);
  if (is_complete) {
    complete_.insert(ino);
  } else {
    complete_.erase(ino);
  }
  for (Known& one : known_) {
    if (one.ino == ino && one.looking == looking) {
      std::swap(one, known);
      return;
    }
  }
}

void KeptArrays::note_read(const std::shared_ptr<KeptArray>& array, std::uint64_t offset,
                           std::span<const iovec> parts) noexcept {
  if (!queue_) {
    return;
  }
  for (const iovec& part : parts) {
    queue_->push(array, offset, {static_cast<const std::byte*>(part.iov_base), part.iov_len});
    offset += part.iov_len;
  }
}

}  // namespace npyfs
