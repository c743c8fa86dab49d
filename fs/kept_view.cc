// SPDX-License-Identifier: Apache-2.0

#include "fs/kept_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/arrays/plain_ranges.h"

namespace npyfs {

// The plain file. What is no longer kept when it is to be read comes from where the file does.
class KeptView::KeptSource : public ByteSource {
 public:
  KeptSource(const NpyFile& plain, const KeptArray& kept, const Fetcher& fetcher)
      : ByteSource(plain.array().name, plain.nbytes(), 0),
        plain_(plain),
        kept_(kept),
        fetcher_(fetcher) {}

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    const WantedRange range{offset, out};
    do_read_ranges({&range, 1});
  }

  void do_read_ranges(std::span<const WantedRange> ranges) const override {
    if (kept_.read(ranges)) {
      return;
    }
    for (const WantedRange& range : ranges) {
      read_plain(range);
    }
  }

  void read_plain(const WantedRange& range) const {
    Gathered gathered;
    fetcher_.read(
        {range.offset, range.offset + range.out.size()},
        [&](ByteRange wanted, Plan& plan) { plain_.plan_read(wanted, plan); }, gathered);
    std::byte* to = range.out.data();
    for (const iovec& part : gathered.parts()) {
      std::memcpy(to, part.iov_base, part.iov_len);
      to += part.iov_len;
    }
  }

  const NpyFile& plain_;
  const KeptArray& kept_;
  const Fetcher& fetcher_;
};

KeptView::KeptView(const NpyFile& view, const NpyFile& plain, std::shared_ptr<KeptArray> kept,
                   const Fetcher& fetcher)
    : view_(view),
      plain_(plain),
      kept_(std::move(kept)),
      source_(std::make_unique<const KeptSource>(plain, *kept_, fetcher)) {
  for (std::atomic<std::uint64_t>& block : begun_) {
    block = UINT64_MAX;
  }
}

KeptView::~KeptView() = default;

bool KeptView::plan_read(ByteRange range, Plan& plan) const {
  range.end = std::min(range.end, view_.nbytes());
  const std::uint64_t header_nbytes = view_.header_nbytes();
  std::uint64_t planned = range.begin;  // all before it is
  std::size_t not_kept = 0;             // ranges from there on that are not
  bool all_are_kept = true;
  const auto add = [&](const PlainRange& part) {
    const std::uint64_t begin = header_nbytes + part.begin;
    const std::uint64_t end = begin + part.nbytes;
    const std::uint64_t plain = plain_.header_nbytes() + part.plain;
    const bool is_kept = kept_->can_read(plain, part.nbytes);
    all_are_kept = all_are_kept && is_kept;
    // As many as may fill a plan are planned before more are looked at.
    if (!is_kept && ++not_kept < Plan::kMostPieces) {
      return true;
    }
    const std::uint64_t to = is_kept ? begin : end;
    if (planned < to) {
      view_.plan_read({planned, to}, plan);
    }
    if (is_kept && !plan.full()) {
      plan.add_extent(*source_, plain, part.nbytes, {});
    }
    planned = end;
    not_kept = 0;
    return !plan.full();
  };
  if (range.end > header_nbytes) {
    const std::uint64_t begin = std::max(range.begin, header_nbytes);
    view_.array().plain->find({begin - header_nbytes, range.end - header_nbytes}, add);
  }
  if (!plan.full() && planned < range.end) {
    view_.plan_read({planned, range.end}, plan);
  }
  return all_are_kept;
}

// Whether the bytes from `plain` on are of a block that is begun, or may be.
bool KeptView::is_worth_noting(std::uint64_t plain, std::uint64_t nbytes) const {
  const std::uint64_t block = plain / kKeptBlockNbytes;
  if (kept_->has(block) && nbytes <= kKeptBlockNbytes - plain % kKeptBlockNbytes) {
    return false;
  }
  std::atomic<std::uint64_t>& begun = begun_[block % kMostBegun];
  std::uint64_t spare = spare_nbytes_.load(std::memory_order_relaxed);
  if (begun.load(std::memory_order_relaxed) != block) {
    if (spare < kKeptBlockNbytes) {
      return false;
    }
    spare -= kKeptBlockNbytes;
    begun.store(block, std::memory_order_relaxed);
  }
  spare_nbytes_.store(std::min(spare + nbytes, kMostSpare), std::memory_order_relaxed);
  return true;
}

void KeptView::note_read(KeptArrays& kept, std::uint64_t offset,
                         std::span<const iovec> parts) const noexcept {
  if (kept_->is_complete()) {
    return;
  }
  const std::uint64_t header_nbytes = view_.header_nbytes();
  std::uint64_t end = offset;
  for (const iovec& part : parts) {
    end += part.iov_len;
  }
  if (end <= header_nbytes) {
    return;
  }
  auto part = parts.begin();
  std::uint64_t part_begin = offset;  // in the view's file
  view_.array().plain->find(
      {std::max(offset, header_nbytes) - header_nbytes, end - header_nbytes},
      [&](const PlainRange& range) {
        const std::uint64_t plain = plain_.header_nbytes() + range.plain;
        if (!is_worth_noting(plain, range.nbytes)) {
          return true;
        }
        // One range may lie in several parts.
        for (std::uint64_t done = 0; done < range.nbytes;) {
          const std::uint64_t at = header_nbytes + range.begin + done;
          while (at >= part_begin + part->iov_len) {
            part_begin += part->iov_len;
            ++part;
          }
          const std::uint64_t within = at - part_begin;
          const std::uint64_t n = std::min(range.nbytes - done, part->iov_len - within);
          const iovec bytes{static_cast<std::byte*>(part->iov_base) + within, n};
          kept.note_read(kept_, plain + done, {&bytes, 1});
          done += n;
        }
        return true;
      });
}

std::shared_ptr<const KeptView> make_kept_view(
    const File& view, const File& plain,
    const std::function<std::shared_ptr<KeptArray>()>& open_kept, const Fetcher& fetcher) {
  const auto* shown = dynamic_cast<const NpyFile*>(&view);
  const auto* given = dynamic_cast<const NpyFile*>(&plain);
  if (shown == nullptr || given == nullptr || shown->array().plain == nullptr ||
      &shown->array().plain->plain() != given->array().array.get()) {
    return nullptr;
  }
  auto kept = open_kept();
  return kept != nullptr
             ? std::make_shared<const KeptView>(*shown, *given, std::move(kept), fetcher)
             : nullptr;
}

}  // namespace npyfs
