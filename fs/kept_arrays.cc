// SPDX-License-Identifier: Apache-2.0

#include "fs/kept_arrays.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/registry.h"
#include "fs/log.h"

namespace npyfs {

namespace {

// A smaller array is read faster than its files are opened.
constexpr std::uint64_t kLeastNbytes = std::uint64_t{16} << 10;

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

std::shared_ptr<KeptFolder> open_cache_folder(const std::string& path,
                                              std::optional<std::uint64_t> most_nbytes) {
  KeptOptions options;
  options.most_nbytes = most_nbytes;
  options.tell = [](const std::string& text) { log_warning(text); };
  return KeptFolder::open(path, std::move(options));
}

KeptArrays::KeptArrays(const KeepOptions& options, std::function<void(Ino)> on_complete)
    : folder_(options.folder),
      version_(options.version),
      dataset_(options.dataset),
      on_complete_(std::move(on_complete)) {
  if (!folder_->is_read_only()) {
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

std::optional<KeptKey> KeptArrays::key_of(const std::string& path, const NpyFile& file) const {
  const NamedArray& array = file.array();
  std::vector<Identity> sources;
  for (const SourcePtr& source : array.sources) {
    sources.push_back(source->identity());
  }
  return KeyWriter()
      .add("version", version_)
      .add("path", path)
      .add("format", array.format)
      .add("header", file.header())
      .add("dataset", text_of(dataset_))
      .add_sources(sources)
      .finish(path);
}

std::shared_ptr<KeptArray> KeptArrays::open(Ino ino, const std::string& path, const File& file) {
  const auto* npy = dynamic_cast<const NpyFile*>(&file);
  if (npy == nullptr || npy->header().empty() || npy->nbytes() < kLeastNbytes ||
      npy->array().array->storage() == "computed") {
    return nullptr;
  }
  const Format* format = find_format(npy->array().format);
  if (format == nullptr || format->opens_files_when_read) {
    return nullptr;
  }
  const MutexLock lock(mutex_);
  if (auto known = find_known(ino)) {
    return known;
  }
  const auto key = key_of(path, *npy);
  const std::span<const std::byte> header = std::as_bytes(std::span(npy->header()));
  auto array = !key     ? nullptr
               : queue_ ? folder_->open(*key, npy->nbytes(), header)
                        : folder_->find(*key, npy->nbytes());
  if (array == nullptr) {
    return nullptr;
  }
  if (queue_ && array->needs_check()) {
    queue_->check_later(array);
  }
  remember(ino, array);
  return array;
}

void KeptArrays::note_complete(const std::shared_ptr<KeptArray>& array) {
  Ino ino = 0;
  {
    const MutexLock lock(mutex_);
    for (Known& known : known_) {
      if (known.array.lock() == array) {
        ino = known.ino;
        known.held = nullptr;
      }
    }
  }
  if (ino != 0) {
    on_complete_(ino);
  }
}

std::shared_ptr<KeptArray> KeptArrays::find_known(Ino ino) {
  const auto known =
      std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.ino == ino; });
  if (known == known_.end()) {
    return nullptr;
  }
  auto array = known->array.lock();
  known_.erase(known);
  if (array == nullptr || array->is_dropped()) {
    return nullptr;
  }
  const bool was_complete = array->is_complete();
  array->refresh();
  remember(ino, array);
  if (!was_complete && array->is_complete()) {
    on_complete_(ino);
  }
  return array;
}

void KeptArrays::remember(Ino ino, const std::shared_ptr<KeptArray>& array) {
  known_.push_front({ino, array, array->is_complete() ? nullptr : array});
  if (known_.size() > kMostKnown) {
    known_.pop_back();
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
