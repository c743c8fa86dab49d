// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/child_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/hdf5/child_read.h"
#include "formats/hdf5/child_type.h"
#include "formats/hdf5/description.h"

namespace npyfs {

namespace {

// Filters that only the library undoes.
constexpr H5Z_filter_t kLibraryFilters[] = {H5Z_FILTER_NBIT, H5Z_FILTER_SCALEOFFSET};
constexpr std::uint64_t kMostCompactNbytes = 1 << 20;
constexpr std::size_t kMostRank = 32;
// That the library is to read at once: of larger chunks, only some rows.
constexpr std::uint64_t kMostBlockNbytes = std::uint64_t{64} << 20;
// What the parent is told of one data set, field by field (description.cc reads it).
class ArrayTeller {
 public:
  ArrayTeller(const NamedDataset& named, const SendFrame& send)
      : file_(named.file),
        dataset_(named.dataset),
        name_(named.name),
        path_(named.path),
        send_(send) {}

  // The frame; nothing where there is no array to show, and then perhaps `why`.
  std::optional<WireFrameWriter> tell(const Dict& attributes, std::string& why) {
    const H5Space space(H5Dget_space(dataset_), "look at the shape");
    if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
      return std::nullopt;
    }
    std::vector<hsize_t> dims(
        static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space.id()), 0)));
    H5Sget_simple_extent_dims(space.id(), dims.data(), nullptr);
    own_shape_.assign(dims.begin(), dims.end());
    const H5Type stored(H5Dget_type(dataset_), "look at the type");
    type_ = to_npy_type(stored.id(), why);
    if (!type_) {
      return std::nullopt;
    }
    properties_ = H5Properties(H5Dget_create_plist(dataset_), "look at the layout");
    shape_ = own_shape_;
    shape_.insert(shape_.end(), type_->extra.begin(), type_->extra.end());
    if (shape_.size() > kMostRank) {
      why = "more than 32 dimensions";
      return std::nullopt;
    }
    attributes_ = &attributes;
    switch (type_->kind) {
      case NpyType::Kind::kText:
        return tell_text();
      case NpyType::Kind::kSequence:
        return tell_sequences(why);
      case NpyType::Kind::kFixed:
        break;
    }
    return tell_fixed(why);
  }

 private:
  WireFrameWriter begin(StorageTag tag, const std::string& descr, std::uint32_t itemsize,
                        const Shape& shape, const std::string& fill) const {
    WireFrameWriter frame(FrameKind::kArray);
    frame.add_text(name_).add_text(path_).add_u8(static_cast<std::uint8_t>(tag));
    frame.add_text(descr).add_u32(itemsize).add_shape(shape).add_text(fill);
    frame.add_value(Value{*attributes_});
    return frame;
  }
  WireFrameWriter begin(StorageTag tag) const {
    return begin(tag, type_->descr, type_->itemsize, shape_, fill_);
  }

  // Blocks that the library is to read: chunks, or rows.
  Shape block_shape(std::uint64_t element_nbytes) const {
    Shape blocks = own_chunk_shape();
    if (blocks.empty()) {
      blocks = own_shape_;
      if (!blocks.empty()) {
        blocks[0] = std::min(blocks[0], block_rows(own_shape_, element_nbytes));
      }
    }
    const std::uint64_t nbytes = checked_mul(element_count(blocks).value_or(UINT64_MAX),
                                             std::max<std::uint64_t>(element_nbytes, 1))
                                     .value_or(UINT64_MAX);
    if (nbytes > kMostBlockNbytes && !blocks.empty()) {
      blocks[0] = std::max<std::uint64_t>(1, blocks[0] / (nbytes / kMostBlockNbytes + 1));
    }
    blocks.insert(blocks.end(), type_->extra.begin(), type_->extra.end());
    for (std::uint64_t& length : blocks) {
      length = std::max<std::uint64_t>(length, 1);
    }
    return blocks;
  }

  // Empty unless it is chunked.
  Shape own_chunk_shape() const {
    if (H5Pget_layout(properties_.id()) != H5D_CHUNKED) {
      return {};
    }
    std::vector<hsize_t> dims(own_shape_.size());
    if (H5Pget_chunk(properties_.id(), static_cast<int>(dims.size()), dims.data()) !=
        static_cast<int>(dims.size())) {
      throw hdf5_failed("cannot look at the shape of its chunks");
    }
    return {dims.begin(), dims.end()};
  }

  // Every element has to be looked at: a crafted file may claim more than can ever be.
  void require_few_elements() const {
    constexpr std::uint64_t kFew = std::uint64_t{1} << 28;
    constexpr std::uint64_t kMostPerByte = 64;
    hsize_t file_nbytes = 0;
    H5Fget_filesize(file_, &file_nbytes);
    const auto elements = element_count(own_shape_);
    if (!elements || *elements > std::max<std::uint64_t>(kFew, file_nbytes * kMostPerByte)) {
      throw ChildError(fmt::format("it claims {} texts or sequences, more than the file can hold",
                                   shape_text(own_shape_)));
    }
  }

  // 8 bytes are told of each. In the file it has 16, if it was ever written, before filters.
  void require_few_sequences() const {
    constexpr std::uint64_t kFew = std::uint64_t{1} << 22;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 26;
    hsize_t file_nbytes = 0;
    H5Fget_filesize(file_, &file_nbytes);
    const std::uint64_t most = std::min(std::max<std::uint64_t>(kFew, file_nbytes / 8), kMost);
    if (own_shape_[0] > most) {
      throw ChildError(
          fmt::format("it has {} sequences, expected at most {}", own_shape_[0], most));
    }
  }

  std::optional<WireFrameWriter> tell_text() const {
    require_few_elements();
    const std::uint32_t longest = longest_text(dataset_, *type_, own_shape_, send_);
    WireFrameWriter frame =
        begin(StorageTag::kRead, fmt::format("'<U{}'", longest), 4 * longest, own_shape_, "");
    frame.add_u8(static_cast<std::uint8_t>(ReadForm::kText)).add_u32(longest);
    frame.add_shape(block_shape(std::uint64_t{4} * longest));
    return frame;
  }

  std::optional<WireFrameWriter> tell_sequences(std::string& why) const {
    if (own_shape_.size() != 1) {
      why = "sequences of any length in other than one dimension";
      return std::nullopt;
    }
    require_few_elements();
    require_few_sequences();
    const std::vector<std::uint64_t> ends = sequence_ends(dataset_, *type_, own_shape_, send_);
    const std::uint64_t sum = ends.empty() ? 0 : ends.back();
    WireFrameWriter frame = begin(StorageTag::kRead, type_->descr, type_->itemsize, {sum}, "");
    frame.add_u8(static_cast<std::uint8_t>(ReadForm::kConcat)).add_u32(0);
    frame.add_shape({std::max<std::uint64_t>(1, block_rows({sum}, type_->itemsize))});
    frame.add_u32(static_cast<std::uint32_t>(ends.size()));
    for (const std::uint64_t end : ends) {
      frame.add_u64(end);
    }
    return frame;
  }

  std::optional<WireFrameWriter> tell_fixed(std::string& why) {
    const bool simple_fill = read_fill_value();
    switch (H5Pget_layout(properties_.id())) {
      case H5D_COMPACT:
        return tell_compact();
      case H5D_CONTIGUOUS:
        if (!simple_fill) {
          return tell_read();
        }
        return H5Pget_external_count(properties_.id()) > 0 ? tell_external(why) : tell_contiguous();
      case H5D_CHUNKED:
        return simple_fill ? tell_chunked() : tell_read();
      case H5D_VIRTUAL:
        return tell_virtual(why);
      default:
        why = "a layout that npyfs does not know";
        return std::nullopt;
    }
  }

  // Whether one element of the array says it: not where the type has axes of its own and the items
  // of one element's fill value differ.
  bool read_fill_value() {
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    if (H5Pfill_value_defined(properties_.id(), &defined) < 0 ||
        defined != H5D_FILL_VALUE_USER_DEFINED) {
      return true;
    }
    std::string fill(type_->nbytes(), '\0');
    if (H5Pget_fill_value(properties_.id(), type_->memory.id(), fill.data()) < 0) {
      return false;
    }
    fill_ = fill.substr(0, type_->itemsize);
    for (std::size_t at = 0; at < fill.size(); at += type_->itemsize) {
      if (fill.compare(at, type_->itemsize, fill_) != 0) {
        return false;
      }
    }
    return true;
  }

  WireFrameWriter tell_read() const {
    WireFrameWriter frame = begin(StorageTag::kRead);
    frame.add_u8(static_cast<std::uint8_t>(ReadForm::kPlain)).add_u32(0);
    frame.add_shape(block_shape(type_->nbytes()));
    return frame;
  }

  std::optional<WireFrameWriter> tell_compact() const {
    const std::uint64_t nbytes = *element_count(own_shape_) * type_->nbytes();
    if (nbytes > kMostCompactNbytes) {
      throw ChildError("it is compact and yet large");
    }
    std::string bytes(nbytes, '\0');
    if (nbytes > 0) {
      read_elements(dataset_, *type_, Shape(own_shape_.size(), 0), own_shape_, bytes.data());
    }
    WireFrameWriter frame = begin(StorageTag::kCompact);
    frame.add_text(bytes);
    return frame;
  }

  WireFrameWriter tell_contiguous() const {
    const haddr_t offset = H5Dget_offset(dataset_);
    // With a user block the library adds its size to HADDR_UNDEF, too: an offset that looks right.
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    if (H5Dget_space_status(dataset_, &status) < 0) {
      throw hdf5_failed("cannot tell whether there is data");
    }
    if (offset == HADDR_UNDEF || status == H5D_SPACE_STATUS_NOT_ALLOCATED) {
      return begin(StorageTag::kAbsent);
    }
    if (!type_->is_raw) {
      return tell_read();
    }
    WireFrameWriter frame = begin(StorageTag::kContiguous);
    frame.add_u64(offset);
    return frame;
  }

  std::optional<WireFrameWriter> tell_external(std::string& why) const {
    if (!type_->is_raw) {
      why = "numbers of odd bits in other files";
      return std::nullopt;
    }
    WireFrameWriter frame = begin(StorageTag::kExternal);
    const int count = H5Pget_external_count(properties_.id());
    frame.add_u32(static_cast<std::uint32_t>(count));
    for (int i = 0; i < count; ++i) {
      std::string name(4096, '\0');
      off_t offset = 0;
      hsize_t nbytes = 0;
      if (H5Pget_external(properties_.id(), static_cast<unsigned>(i), name.size() - 1, name.data(),
                          &offset, &nbytes) < 0) {
        throw hdf5_failed("cannot look at the files it lies in");
      }
      frame.add_text(name.c_str()).add_u64(static_cast<std::uint64_t>(offset)).add_u64(nbytes);
    }
    return frame;
  }

  WireFrameWriter tell_chunked() const {
    std::vector<FilterDescription> filters = read_filters();
    const bool for_library = std::any_of(filters.begin(), filters.end(), [](const auto& filter) {
      return std::count(std::begin(kLibraryFilters), std::end(kLibraryFilters),
                        static_cast<H5Z_filter_t>(filter.id)) > 0;
    });
    if (for_library || !type_->is_raw) {
      return tell_read();
    }
    unsigned options = 0;
    H5Pget_chunk_opts(properties_.id(), &options);
    H5O_info_t about;
    const H5Properties creation(H5Fget_create_plist(file_), "look at the file's layout");
    hsize_t user_block = 0;
    if (H5Oget_info2(dataset_, &about, H5O_INFO_BASIC) < 0 ||
        H5Pget_userblock(creation.id(), &user_block) < 0) {
      throw hdf5_failed("cannot find its header");
    }
    Shape chunk_shape = own_chunk_shape();
    chunk_shape.insert(chunk_shape.end(), type_->extra.begin(), type_->extra.end());
    WireFrameWriter frame = begin(StorageTag::kChunked);
    frame.add_shape(chunk_shape);
    frame.add_u8(static_cast<std::uint8_t>(type_->extra.size()));
    frame.add_u8((options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0 ? 1 : 0);
    frame.add_u64(user_block).add_u64(about.addr);
    frame.add_u32(static_cast<std::uint32_t>(filters.size()));
    for (const FilterDescription& filter : filters) {
      frame.add_u32(filter.id).add_text(filter.name);
      frame.add_u32(static_cast<std::uint32_t>(filter.parameters.size()));
      for (const std::uint32_t parameter : filter.parameters) {
        frame.add_u32(parameter);
      }
    }
    return frame;
  }

  std::vector<FilterDescription> read_filters() const {
    std::vector<FilterDescription> filters;
    const int count = H5Pget_nfilters(properties_.id());
    for (unsigned i = 0; count > 0 && i < static_cast<unsigned>(count); ++i) {
      FilterDescription filter;
      std::size_t parameters = 0;
      unsigned flags = 0;
      unsigned config = 0;
      std::string name(256, '\0');
      // The number alone first: there is no limit to it.
      const H5Z_filter_t id = H5Pget_filter2(properties_.id(), i, &flags, &parameters, nullptr,
                                             name.size() - 1, name.data(), &config);
      filter.parameters.resize(parameters);
      if (id < 0 ||
          H5Pget_filter2(properties_.id(), i, &flags, &parameters, filter.parameters.data(),
                         name.size() - 1, name.data(), &config) < 0) {
        throw hdf5_failed("cannot look at its filters");
      }
      filter.id = static_cast<std::uint32_t>(id);
      filter.name = name.c_str();
      filters.push_back(std::move(filter));
    }
    return filters;
  }

  std::optional<WireFrameWriter> tell_virtual(std::string& why) const {
    std::size_t count = 0;
    if (!type_->is_raw || H5Pget_virtual_count(properties_.id(), &count) < 0) {
      why = "a virtual array of numbers of odd bits";
      return std::nullopt;
    }
    WireFrameWriter frame = begin(StorageTag::kVirtual);
    frame.add_u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      frame.add_text(virtual_name(H5Pget_virtual_filename, i));
      frame.add_text(virtual_name(H5Pget_virtual_dsetname, i));
      const H5Space here(H5Pget_virtual_vspace(properties_.id(), i), "look at a part");
      const H5Space there(H5Pget_virtual_srcspace(properties_.id(), i), "look at a part");
      if (!add_selection(frame, here.id()) || !add_selection(frame, there.id())) {
        why = "a virtual array of other parts than boxes of known extent";
        return std::nullopt;
      }
    }
    return frame;
  }

  using VirtualName = ssize_t (*)(hid_t, std::size_t, char*, std::size_t);
  std::string virtual_name(VirtualName ask, std::size_t i) const {
    const ssize_t nbytes = ask(properties_.id(), i, nullptr, 0);
    std::string name(static_cast<std::size_t>(std::max<ssize_t>(nbytes, 0)) + 1, '\0');
    if (nbytes < 0 || ask(properties_.id(), i, name.data(), name.size()) < 0) {
      throw hdf5_failed("cannot look at what it is made of");
    }
    name.pop_back();
    return name;
  }

  static bool add_selection(WireFrameWriter& frame, hid_t space) {
    const H5S_sel_type kind = H5Sget_select_type(space);
    if (kind == H5S_SEL_ALL) {
      // Of a source the extent is not known here.
      frame.add_u8(kWholeSelection);
      return true;
    }
    const auto rank = static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
    std::vector<hsize_t> start(rank, 0);
    std::vector<hsize_t> stride(rank, 1);
    std::vector<hsize_t> count(rank, 1);
    std::vector<hsize_t> block(rank, 1);
    if (kind != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space) <= 0 ||
        H5Sget_regular_hyperslab(space, start.data(), stride.data(), count.data(), block.data()) <
            0) {
      return false;
    }
    frame.add_u8(static_cast<std::uint8_t>(rank));
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (count[axis] == H5S_UNLIMITED || block[axis] == H5S_UNLIMITED) {
        return false;
      }
      frame.add_u64(start[axis]).add_u64(stride[axis]).add_u64(count[axis]).add_u64(block[axis]);
    }
    return true;
  }

  hid_t file_;
  hid_t dataset_;
  const std::string& name_;
  const std::string& path_;
  const SendFrame& send_;
  const Dict* attributes_ = nullptr;
  std::optional<NpyType> type_;
  H5Properties properties_;
  Shape own_shape_;  // the data set's
  Shape shape_;      // with the axes of its type
  std::string fill_;
};

}  // namespace

std::optional<WireFrameWriter> tell_array(const NamedDataset& named, const Dict& attributes,
                                          const SendFrame& send, std::string& why) {
  return ArrayTeller(named, send).tell(attributes, why);
}

}  // namespace npyfs
