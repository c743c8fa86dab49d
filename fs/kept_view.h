// SPDX-License-Identifier: Apache-2.0
//
// Reads an array of a view through what is kept of the plain array, whose bytes it shows in another
// order.

#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "formats/bytes/plan.h"
#include "fs/fetch.h"
#include "fs/kept_arrays.h"
#include "fs/npy_file.h"
#include "kept/kept_array.h"

namespace npyfs {

// What an open file of a view knows. Any thread.
class KeptView {
 public:
  // `kept` is what is kept of the file `plain`. The two files and `fetcher` must outlive it.
  KeptView(const NpyFile& view, const NpyFile& plain, std::shared_ptr<KeptArray> kept,
           const Fetcher& fetcher);
  ~KeptView();

  // As File::plan_read() of the view's file: bytes that are kept are planned as extents of what is
  // kept, the others as ever. Returns whether all are kept, but for the header and padding. Looks
  // at the cache folder's map of an array in part.
  bool plan_read(ByteRange range, Plan& plan) const;

  // As KeptArray::note_asked() of the plain array.
  bool note_asked(std::uint64_t nbytes) const noexcept {
    return kept_->note_asked(nbytes) && !kept_->is_complete();
  }

  // A reader was given the bytes in `parts`, from `offset` of the view's file on: what is not kept
  // of them is, in its place in the plain file. Never throws, never waits.
  void note_read(KeptArrays& kept, std::uint64_t offset,
                 std::span<const iovec> parts) const noexcept;

 private:
  class KeptSource;

  bool is_worth_noting(std::uint64_t plain, std::uint64_t nbytes) const;

  // A shuffle of small records of many blocks would begin a block for each of them, drop another
  // one for it and fill none. So another block is begun only for every block's worth of bytes that
  // came. Guesses, for any thread.
  static constexpr std::size_t kMostBegun = 16;  // as many as a FillQueue puts together
  static constexpr std::uint64_t kMostSpare = kMostBegun * kKeptBlockNbytes;
  mutable std::array<std::atomic<std::uint64_t>, kMostBegun> begun_;  // each block has one place
  mutable std::atomic<std::uint64_t> spare_nbytes_{kMostSpare};

  const NpyFile& view_;
  const NpyFile& plain_;
  std::shared_ptr<KeptArray> kept_;
  std::unique_ptr<const KeptSource> source_;
};

// Null if `view` shows no bytes of `plain`, or if open_kept(), what is kept of that, is null.
std::shared_ptr<const KeptView> make_kept_view(
    const File& view, const File& plain,
    const std::function<std::shared_ptr<KeptArray>()>& open_kept, const Fetcher& fetcher);

}  // namespace npyfs
