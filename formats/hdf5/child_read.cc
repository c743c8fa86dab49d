// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/child_read.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

// The parent asks for no more; a lying file shall not make the child try.
constexpr std::uint64_t kMostNbytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kBlockNbytes = std::uint64_t{1} << 20;

H5Space box_space(hid_t dataset, const Shape& start, const Shape& count) {
  H5Space space(H5Dget_space(dataset), "look at the shape");
  const std::vector<hsize_t> from(start.begin(), start.end());
  const std::vector<hsize_t> many(count.begin(), count.end());
  if (!start.empty() && H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, from.data(), nullptr,
                                            many.data(), nullptr) < 0) {
    throw hdf5_failed("cannot select a part");
  }
  return space;
}

std::uint64_t box_elements(const Shape& count, std::uint64_t element_nbytes) {
  const auto elements = element_count(count);
  const auto nbytes = elements ? checked_mul(*elements, element_nbytes) : std::nullopt;
  if (!nbytes || *nbytes > kMostNbytes) {
    throw ChildError("a part of more than 2 GiB was asked for");
  }
  return *elements;
}

// Elements that point to memory of the library, which is given back at the end.
template <typename T>
class PointingElements {
 public:
  PointingElements(hid_t dataset, const Shape& start, const Shape& count, hid_t memory)
      : elements_(box_elements(count, sizeof(T))),
        memory_(memory),
        space_(H5Screate_simple(1, std::array<hsize_t, 1>{elements_.size()}.data(), nullptr),
               "make a shape") {
    const H5Space from = box_space(dataset, start, count);
    if (!elements_.empty() &&
        H5Dread(dataset, memory, space_.id(), from.id(), H5P_DEFAULT, elements_.data()) < 0) {
      throw hdf5_failed("cannot read it");
    }
  }
  PointingElements(const PointingElements&) = delete;
  PointingElements& operator=(const PointingElements&) = delete;
  ~PointingElements() {
    if (!elements_.empty()) {
      H5Dvlen_reclaim(memory_, space_.id(), H5P_DEFAULT, elements_.data());
    }
  }

  const std::vector<T>& get() const { return elements_; }

 private:
  std::vector<T> elements_;
  hid_t memory_;
  H5Space space_;
};

using TextElements = PointingElements<const char*>;
using SequenceElements = PointingElements<hvl_t>;

std::string_view as_view(const char* text) { return text != nullptr ? text : ""; }

// Calls `visit(start, count)` for boxes of whole rows that cover the shape.
template <typename Visit>
void for_each_block(const Shape& shape, std::uint64_t element_nbytes, const SendFrame& send,
                    Visit visit) {
  if (shape.empty()) {
    visit(shape, shape);
    return;
  }
  const std::uint64_t rows = block_rows(shape, element_nbytes);
  Shape start(shape.size(), 0);
  Shape count = shape;
  for (; start[0] < shape[0]; start[0] += rows) {
    count[0] = std::min(rows, shape[0] - start[0]);
    visit(start, count);
    WireFrameWriter progress(FrameKind::kProgress);
    send(progress);
  }
}

class DataSender {
 public:
  DataSender(const SendFrame& send, const BoxRequest& request)
      : send_(send), skip_(request.skip_nbytes), left_(request.nbytes) {}

  void add(std::span<const std::byte> bytes) {
    const auto skipped = std::min<std::uint64_t>(bytes.size(), skip_);
    skip_ -= skipped;
    bytes = bytes.subspan(skipped);
    bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), left_));
    left_ -= bytes.size();
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kDataPieceNbytes));
      WireFrameWriter frame(FrameKind::kData);
      frame.add_bytes(piece);
      send_(frame);
      bytes = bytes.subspan(piece.size());
    }
  }

 private:
  const SendFrame& send_;
  std::uint64_t skip_;
  std::uint64_t left_;
};

H5Type sequence_memory(const NpyType& type) {
  return H5Type(H5Tvlen_create(type.memory.id()), "make a type");
}

}  // namespace

std::uint64_t block_rows(const Shape& shape, std::uint64_t element_nbytes) {
  const std::uint64_t row_nbytes =
      checked_mul(row_elements(shape), std::max<std::uint64_t>(element_nbytes, 1))
          .value_or(kBlockNbytes);
  return std::max<std::uint64_t>(1, kBlockNbytes / std::max<std::uint64_t>(row_nbytes, 1));
}

void read_elements(hid_t dataset, const NpyType& type, const Shape& start, const Shape& count,
                   void* bytes) {
  const H5Space from = box_space(dataset, start, count);
  const std::vector<hsize_t> many(count.begin(), count.end());
  const H5Space to(many.empty()
                       ? H5Screate(H5S_SCALAR)
                       : H5Screate_simple(static_cast<int>(many.size()), many.data(), nullptr),
                   "make a shape");
  if (H5Dread(dataset, type.memory.id(), to.id(), from.id(), H5P_DEFAULT, bytes) < 0) {
    throw hdf5_failed("cannot read it");
  }
}

std::uint32_t longest_text(hid_t dataset, const NpyType& type, const Shape& shape,
                           const SendFrame& send) {
  std::uint64_t longest = 1;
  for_each_block(shape, sizeof(char*), send, [&](const Shape& start, const Shape& count) {
    const TextElements texts(dataset, start, count, type.memory.id());
    for (const char* text : texts.get()) {
      longest = std::max(longest, utf8_length(as_view(text)));
    }
  });
  if (longest > INT32_MAX / 4) {
    throw ChildError("it has a text of more than 2^29 characters");
  }
  return static_cast<std::uint32_t>(longest);
}

std::vector<std::uint64_t> sequence_ends(hid_t dataset, const NpyType& type, const Shape& shape,
                                         const SendFrame& send) {
  std::vector<std::uint64_t> ends;
  std::uint64_t sum = 0;
  const H5Type memory = sequence_memory(type);
  for_each_block(shape, sizeof(hvl_t), send, [&](const Shape& start, const Shape& count) {
    const SequenceElements sequences(dataset, start, count, memory.id());
    for (const hvl_t& sequence : sequences.get()) {
      sum += sequence.len;
      ends.push_back(sum);
    }
  });
  return ends;
}

// One box of them, as the library has read it.
class BoxReader::Sequences {
 public:
  Sequences(hid_t dataset, const NpyType& type, const BoxRequest& request)
      : path_(request.path),
        start_(request.start),
        count_(request.count),
        memory_(sequence_memory(type)),
        elements_(dataset, start_, count_, memory_.id()) {}

  bool are(const BoxRequest& request) const {
    return path_ == request.path && start_ == request.start && count_ == request.count;
  }
  const std::vector<hvl_t>& get() const { return elements_.get(); }

 private:
  std::string path_;
  Shape start_;
  Shape count_;
  H5Type memory_;
  SequenceElements elements_;
};

BoxReader::BoxReader(hid_t file) : file_(file) {}

BoxReader::~BoxReader() = default;

void BoxReader::read(const BoxRequest& request, const SendFrame& send) {
  const H5Object dataset(H5Dopen2(file_, request.path.c_str(), H5P_DEFAULT), "open it");
  const H5Type stored(H5Dget_type(dataset.id()), "look at the type");
  std::string why;
  const auto type = to_npy_type(stored.id(), why);
  const H5Space space(H5Dget_space(dataset.id()), "look at the shape");
  const auto rank = static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space.id()), 0));
  if (!type || request.start.size() < rank || request.count.size() != request.start.size()) {
    throw ChildError("it is no longer what it was");
  }
  const Shape start(request.start.begin(), request.start.begin() + static_cast<long>(rank));
  const Shape count(request.count.begin(), request.count.begin() + static_cast<long>(rank));
  DataSender sender(send, request);
  switch (request.form) {
    case ReadForm::kPlain: {
      const std::uint64_t element_nbytes = type->nbytes();
      std::vector<std::byte> bytes(box_elements(count, element_nbytes) * element_nbytes);
      read_elements(dataset.id(), *type, start, count, bytes.data());
      sender.add(bytes);
      break;
    }
    case ReadForm::kText: {
      const TextElements texts(dataset.id(), start, count, type->memory.id());
      std::vector<std::byte> bytes(box_elements(count, std::uint64_t{4} * request.characters) * 4 *
                                   request.characters);
      std::span<std::byte> rest(bytes);
      for (const char* text : texts.get()) {
        const std::size_t nbytes = std::size_t{4} * request.characters;
        write_utf32(as_view(text), rest.first(nbytes));
        rest = rest.subspan(nbytes);
      }
      sender.add(bytes);
      break;
    }
    case ReadForm::kConcat: {
      if (sequences_ == nullptr || !sequences_->are(request)) {
        sequences_.reset();  // before others take its place in memory
        sequences_ = std::make_unique<const Sequences>(dataset.id(), *type, request);
      }
      for (const hvl_t& sequence : sequences_->get()) {
        sender.add({static_cast<const std::byte*>(sequence.p), sequence.len * type->itemsize});
      }
      break;
    }
  }
}

}  // namespace npyfs
