// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/child_describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "formats/hdf5/child_array.h"
#include "formats/hdf5/child_attributes.h"
#include "formats/hdf5/description.h"

namespace npyfs {

namespace {

// Asking for each of n chunks costs n steps.
constexpr hsize_t kMostListedChunks = 16384;

// Ways that lead to one group. A few groups that link to each other twice have more ways through
// them than could ever be gone.
constexpr std::size_t kMostVisits = 1000;

struct Link {
  std::string name;
  H5L_type_t type = H5L_TYPE_HARD;
};

// Only gathers: nothing may be thrown through the library.
herr_t gather_link(hid_t /*group*/, const char* name, const H5L_info_t* info, void* links) {
  static_cast<std::vector<Link>*>(links)->push_back({name, info->type});
  return 0;
}

std::string below(const std::string& path, const std::string& name) {
  return path.empty() || path.back() == '/' ? path + name : path + "/" + name;
}

// Concerns the whole file, and not what a link leads to.
class TooManyLinks : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Walker {
 public:
  Walker(hid_t file, const SendFrame& send) : file_(file), send_(send) {}

  void visit(const H5Object& object, const std::string& name, const std::string& path) {
    switch (H5Iget_type(object.id())) {
      case H5I_GROUP:
        visit_group(object, name, path);
        break;
      case H5I_DATASET:
        visit_dataset(object, name, path);
        break;
      default:
        break;  // a named type
    }
  }

  // What there may be much of: a line for each kind.
  void tell_left_out() const {
    for (const auto& [kind, of_kind] : left_out_) {
      std::string text = fmt::format("{} are left out: {}", kind, fmt::join(of_kind.names, ", "));
      if (of_kind.count > of_kind.names.size()) {
        text += fmt::format(" and {} more", of_kind.count - of_kind.names.size());
      }
      WireFrameWriter frame(FrameKind::kWarning);
      frame.add_text(text);
      send_(frame);
    }
  }

 private:
  void leave_out(const std::string& kind, const std::string& name) {
    constexpr std::size_t kMostNames = 8;
    LeftOut& of_kind = left_out_[kind];
    if (++of_kind.count <= kMostNames) {
      of_kind.names.push_back(name);
    }
  }

  void warn(const std::string& path, const std::string& text) const {
    WireFrameWriter frame(FrameKind::kWarning);
    frame.add_text(fmt::format("{}: {}", path, text));
    send_(frame);
  }

  Dict attributes_of(const H5Object& object, const std::string& path) {
    std::vector<LeftOutAttribute> left_out;
    Dict attributes = read_attributes(object.id(), attribute_budget_, left_out);
    for (const LeftOutAttribute& attribute : left_out) {
      leave_out(attribute.why.empty() ? "attributes that are references"
                                      : fmt::format("attributes ({})", attribute.why),
                fmt::format("{} of {}", attribute.name, path));
    }
    return attributes;
  }

  void visit_group(const H5Object& group, const std::string& name, const std::string& path) {
    H5O_info_t about;
    if (H5Oget_info2(group.id(), &about, H5O_INFO_BASIC) < 0) {
      throw hdf5_failed("cannot look at it");
    }
    const auto address = std::make_pair(about.fileno, about.addr);
    if (std::count(on_path_.begin(), on_path_.end(), address) > 0) {
      return;  // a link back to where it hangs
    }
    if (++visits_[address] > kMostVisits) {
      throw TooManyLinks(
          fmt::format("more than {} links lead to its group {}, expected fewer; they "
                      "multiply what it holds",
                      kMostVisits, path));
    }
    if (on_path_.size() >= kMostGroupDepth) {
      warn(path, "left out, as groups nest too deeply");
      return;
    }
    WireFrameWriter frame(FrameKind::kGroupBegin);
    frame.add_text(name).add_value(Value{attributes_of(group, path)});
    send_(frame);
    on_path_.push_back(address);
    std::vector<Link> links;
    hsize_t next = 0;
    if (H5Literate(group.id(), H5_INDEX_NAME, H5_ITER_INC, &next, gather_link, &links) < 0) {
      if (on_path_.size() == 1) {
        throw hdf5_failed("the root group cannot be read");
      }
      warn(path, "not all of the group can be read: " + last_hdf5_error());
    }
    for (const Link& link : links) {
      visit_link(group, link, below(path, link.name));
    }
    on_path_.pop_back();
    WireFrameWriter end(FrameKind::kGroupEnd);
    send_(end);
  }

  void visit_link(const H5Object& group, const Link& link, const std::string& path) {
    if (link.type == H5L_TYPE_EXTERNAL) {
      tell_external(group, link, path);
      return;
    }
    if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT) {
      warn(path, "left out, as it is a link of no known kind");
      return;
    }
    try {
      const H5Object object(H5Oopen(group.id(), link.name.c_str(), H5P_DEFAULT));
      if (object.is_open()) {
        visit(object, link.name, path);
      } else if (link.type == H5L_TYPE_HARD) {
        warn(path, "left out, as it cannot be opened: " + last_hdf5_error());
      } else {
        leave_out("links that lead nowhere, or through other files,", path);
      }
    } catch (const ChildError& error) {
      warn(path, fmt::format("left out: {}", error.what()));
    } catch (const std::bad_alloc&) {
      warn(path, "left out: it needs more memory than the HDF5 library may have");
    }
  }

  void tell_external(const H5Object& group, const Link& link, const std::string& path) {
    H5L_info_t about;
    const char* file = nullptr;
    const char* target = nullptr;
    unsigned flags = 0;
    std::vector<char> value;
    if (H5Lget_info(group.id(), link.name.c_str(), &about, H5P_DEFAULT) >= 0) {
      value.resize(about.u.val_size);
    }
    if (value.empty() ||
        H5Lget_val(group.id(), link.name.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value.data(), value.size(), &flags, &file, &target) < 0) {
      warn(path, "left out, as the link to another file cannot be read");
      return;
    }
    WireFrameWriter frame(FrameKind::kExternalLink);
    frame.add_text(link.name).add_text(file).add_text(target);
    send_(frame);
  }

  void visit_dataset(const H5Object& dataset, const std::string& name, const std::string& path) {
    std::string why;
    auto frame =
        tell_array({file_, dataset.id(), name, path}, attributes_of(dataset, path), send_, why);
    if (frame) {
      send_(*frame);
    } else if (!why.empty()) {
      warn(path, fmt::format("left out, as it holds {}", why));
    } else {
      leave_out("data sets without a shape (H5S_NULL)", path);
    }
  }

  hid_t file_;
  const SendFrame& send_;
  AttributeBudget attribute_budget_;
  std::map<std::pair<unsigned long, haddr_t>, std::size_t> visits_;  // of groups
  struct LeftOut {
    std::size_t count = 0;
    std::vector<std::string> names;  // the first ones
  };
  std::map<std::string, LeftOut> left_out_;  // by kind
  std::vector<std::pair<unsigned long, haddr_t>> on_path_;
};

// Whether each link on the way is there; where they lead is another matter.
bool has_path(hid_t file, const std::string& path) {
  for (std::size_t end = path.find_first_not_of('/'); end < path.size();) {
    end = std::min(path.find('/', end), path.size());
    if (H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT) == 0) {
      return false;
    }
    end = path.find_first_not_of('/', end);
  }
  return true;
}

}  // namespace

void describe_object(hid_t file, const std::string& path, const SendFrame& send) {
  if (!has_path(file, path)) {
    return;
  }
  const H5Object object(H5Oopen(file, path.c_str(), H5P_DEFAULT), fmt::format("open {}", path));
  Walker walker(file, send);
  walker.visit(object, "", path);
  walker.tell_left_out();
}

void list_chunks(hid_t file, const std::string& path, const SendFrame& send) {
  const H5Object dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT), "open it");
  const H5Space space(H5Dget_space(dataset.id()), "look at the shape");
  const H5Properties creation(H5Fget_create_plist(file), "look at the file's layout");
  hsize_t user_block = 0;
  hsize_t count = 0;
  if (H5Pget_userblock(creation.id(), &user_block) < 0 ||
      H5Dget_num_chunks(dataset.id(), H5S_ALL, &count) < 0) {
    throw hdf5_failed("cannot count its chunks");
  }
  if (count > kMostListedChunks) {
    throw ChildError(
        fmt::format("its index of {} chunks is of no kind that npyfs reads, expected "
                    "at most {}",
                    count, kMostListedChunks));
  }
  std::vector<hsize_t> offset(
      static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space.id()), 0)));
  for (hsize_t i = 0; i < count; ++i) {
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t nbytes = 0;
    if (H5Dget_chunk_info(dataset.id(), H5S_ALL, i, offset.data(), &mask, &address, &nbytes) < 0) {
      throw hdf5_failed("cannot find a chunk");
    }
    WireFrameWriter frame(FrameKind::kData);
    for (const hsize_t at : offset) {
      frame.add_u64(at);
    }
    // Here the library counts from behind the user block.
    frame.add_u64(address + user_block).add_u64(nbytes).add_u32(mask);
    send(frame);
  }
}

}  // namespace npyfs
