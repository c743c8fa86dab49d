// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/linked_files.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/fault_tally.h"
#include "formats/hdf5/array_names.h"
#include "formats/hdf5/array_opener.h"
#include "formats/hdf5/file_set.h"
#include "formats/hdf5/link_follower.h"

namespace npyfs {

namespace {

// Warnings about single links that are left out. Further ones are told by one line for each kind of
// reason.
constexpr std::size_t kMostWarnings = 100;

class Opener {
 public:
  Opener(OpenContext& context, const Patience& patience, const DescriptionBudget& used)
      : context_(context),
        files_(patience),
        links_(files_, used, context.warn),
        arrays_(context, patience, files_, links_) {}

  StorePtr open(const SourcePtr& source, const std::string& path) {
    LinkedFile& file = files_.add(path, source);
    auto store = std::make_shared<Store>();
    store->sources = {source};
    GroupDescription described = links_.describe_root(file);
    if (described.groups.size() != 1) {
      throw file_error(ErrorKind::kCorrupt, source->name(), "it has no root group");
    }
    const VisitScope scope(links_, {&file, "/", LinkFollower::Visit::kLink});
    build(file, "/", described.groups.front(), store->root);
    further_left_out_.tell(context_.warn);
    store->root.name.clear();
    return store;
  }

 private:
  using VisitScope = LinkFollower::VisitScope;

  void leave_out(const LinkedFile& file, const std::string& path, const Error& error) {
    const std::string text = fmt::format("{}: {}: left out: {}", printable(file.source()->name()),
                                         printable(path), error.what());
    if (++left_out_ > kMostWarnings) {
      further_left_out_.add(error.said(), text);
    } else {
      context_.warn(text);
    }
  }

  // `path` is that of the group in the file.
  void build(LinkedFile& file, const std::string& path, GroupDescription& described, Group& group) {
    group.name = described.name;
    group.attributes = std::move(described.attributes);
    for (ArrayDescription& array : described.arrays) {
      add_array(file, array, group);
    }
    for (const ExternalLinkDescription& link : described.links) {
      try {
        follow(file, link, group);
      } catch (const Error& error) {
        links_.require_lenient(error);
        leave_out(file, path_below(path, link.name), error);
      }
    }
    settle_names(file.source()->name(), group.arrays, context_.warn);
    for (GroupDescription& inner : described.groups) {
      build(file, path_below(path, inner.name), inner, group.groups.emplace_back());
    }
  }

  void follow(LinkedFile& from, const ExternalLinkDescription& link, Group& group) {
    LinkFollower::Found found = links_.find_object(files_.find(from, link.file), link.path);
    const VisitScope scope(links_, {found.file, found.path, LinkFollower::Visit::kLink});
    if (found.described.groups.empty() && found.described.arrays.empty()) {
      throw file_error(ErrorKind::kNotFound, found.file->source()->name(),
                       fmt::format("it has no group or array {}", printable(found.path)));
    }
    for (GroupDescription& inner : found.described.groups) {
      inner.name = link.name;
      build(*found.file, found.path, inner, group.groups.emplace_back());
    }
    for (ArrayDescription& array : found.described.arrays) {
      array.name = link.name;
      add_array(*found.file, array, group);
    }
  }

  void add_array(LinkedFile& file, ArrayDescription& array, Group& group) {
    try {
      std::vector<StoredArray> opened = arrays_.open(file, array);
      std::move(opened.begin(), opened.end(), std::back_inserter(group.arrays));
    } catch (const Error& error) {
      links_.require_lenient(error);
      leave_out(file, array.path, error);
    }
  }

  OpenContext& context_;
  FileSet files_;
  LinkFollower links_;
  ArrayOpener arrays_;
  std::size_t left_out_ = 0;
  FaultTally further_left_out_{"objects"};
};

}  // namespace

StorePtr open_hdf5(const SourcePtr& source, const std::string& path, OpenContext& context,
                   const Patience& patience, const DescriptionBudget& used) {
  return Opener(context, patience, used).open(source, path);
}

}  // namespace npyfs
