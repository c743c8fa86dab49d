// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/hdf5/read_grids.h"

namespace npyfs {

namespace {

class AbsentGrid : public ChunkGrid {
 public:
  explicit AbsentGrid(const ArrayDescription& array)
      : ChunkGrid({array.dtype, array.shape, whole(array.shape), true}, array.fill_value,
                  "never written") {}

  ChunkPlace locate(std::uint64_t /*chunk*/) const override { return {}; }

 private:
  static Shape whole(Shape shape) {
    for (std::uint64_t& length : shape) {
      length = std::max<std::uint64_t>(length, 1);
    }
    return shape;
  }
};

class LibraryGrid : public DecodedGrid {
 public:
  LibraryGrid(const ArrayDescription& array, const ReadStorage& storage,
              std::shared_ptr<const Hdf5Process> process)
      : DecodedGrid({array.dtype, array.shape, storage.block_shape, true}, array.fill_value,
                    fmt::format("read by the HDF5 library")),
        path_(array.path),
        storage_(storage),
        process_(std::move(process)) {
    for (std::uint64_t chunk = 0; chunk < std::min<std::uint64_t>(chunk_count(), 1); ++chunk) {
      if (chunk_nbytes(chunk) > kMostDecodedNbytes) {
        throw file_error(ErrorKind::kTooLarge, process_->source()->name(),
                         fmt::format("{} has chunks of {} bytes, expected at most {}",
                                     printable(path_), chunk_nbytes(chunk), kMostDecodedNbytes));
      }
    }
  }

  void decode(std::uint64_t chunk, std::span<std::byte> out,
              DecodeContext& /*context*/) const override {
    if (storage_.form == ReadForm::kConcat) {
      read_items(chunk_begin(chunk)[0], out);
    } else {
      process_->read(path_, storage_.form, storage_.characters, chunk_begin(chunk),
                     stored_shape(chunk), 0, out);
    }
  }

 private:
  // The library has whole sequences; of the first and the last only a part may be wanted.
  void read_items(std::uint64_t first_item, std::span<std::byte> out) const {
    const auto& ends = storage_.row_ends;
    const std::uint64_t end_item = first_item + out.size() / dtype().itemsize;
    const auto first = std::upper_bound(ends.begin(), ends.end(), first_item) - ends.begin();
    const auto last = std::lower_bound(ends.begin(), ends.end(), end_item) - ends.begin();
    const std::uint64_t begin = first == 0 ? 0 : ends[static_cast<std::size_t>(first) - 1];
    process_->read(path_, ReadForm::kConcat, 0, {static_cast<std::uint64_t>(first)},
                   {static_cast<std::uint64_t>(last - first) + 1},
                   (first_item - begin) * dtype().itemsize, out);
  }

  std::string path_;
  ReadStorage storage_;
  std::shared_ptr<const Hdf5Process> process_;
};

// Changes when one of its sources does, which are asked by whoever reads.
class JoinedSource : public ByteSource {
 public:
  JoinedSource(std::string name, std::vector<std::pair<SourcePtr, ByteRange>> pieces,
               std::uint64_t nbytes, std::int64_t mtime_ns)
      : ByteSource(std::move(name), nbytes, mtime_ns), pieces_(std::move(pieces)) {}

  std::string path() const override {
    return pieces_.empty() ? std::string() : pieces_.front().first->path();
  }
  void check_unchanged() const override {
    for (const auto& [source, range] : pieces_) {
      source->check_unchanged();
    }
  }
  bool changed() const override {
    return std::any_of(pieces_.begin(), pieces_.end(),
                       [](const auto& piece) { return piece.first->changed(); });
  }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (const auto& [source, range] : pieces_) {
      if (offset >= range.nbytes()) {
        offset -= range.nbytes();
        continue;
      }
      const auto part = out.first(std::min<std::uint64_t>(out.size(), range.nbytes() - offset));
      source->read_at(range.begin + offset, part);
      out = out.subspan(part.size());
      offset = 0;
      if (out.empty()) {
        return;
      }
    }
  }

  std::vector<std::pair<SourcePtr, ByteRange>> pieces_;
};

}  // namespace

std::shared_ptr<const ChunkGrid> make_absent_grid(const ArrayDescription& array) {
  return std::make_shared<AbsentGrid>(array);
}

std::shared_ptr<const ChunkGrid> make_library_grid(const ArrayDescription& array,
                                                   const ReadStorage& storage,
                                                   std::shared_ptr<const Hdf5Process> process) {
  return std::make_shared<LibraryGrid>(array, storage, std::move(process));
}

SourcePtr make_joined_source(std::string name,
                             std::vector<std::pair<SourcePtr, ByteRange>> pieces) {
  std::uint64_t nbytes = 0;
  std::int64_t mtime_ns = 0;
  for (const auto& [source, range] : pieces) {
    nbytes += range.nbytes();
    mtime_ns = std::max(mtime_ns, source->mtime_ns());
  }
  return std::make_shared<JoinedSource>(std::move(name), std::move(pieces), nbytes, mtime_ns);
}

}  // namespace npyfs
