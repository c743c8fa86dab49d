// SPDX-License-Identifier: Apache-2.0

#include "formats/wenet/wenet.h"

#include <fmt/format.h>

#include <optional>

#include "formats/archives/tar_index.h"
#include "formats/archives/tar_table.h"
#include "formats/bytes/descriptor_pool.h"
#include "formats/named_files.h"
#include "formats/wenet/list_lines.h"
#include "formats/wenet/raw_list.h"

namespace npyfs {

namespace {

// Adds the shards of a list to one index. One use.
class ShardList {
 public:
  ShardList(const SourcePtr& list, const std::string& folder, OpenContext& context)
      : list_(list),
        context_(context),
        files_(folder, context),
        indexer_(TarGrouping::kWenet, context) {}

  std::shared_ptr<const RecordTable> open() {
    for_each_line(*list_, [&](const ListLine& line) { take(line); });
    if (shards_ == 0) {
      throw file_error(ErrorKind::kCorrupt, list_->name(),
                       "the list has no line, expected the path of a shard on each");
    }
    if (first_left_out_ && left_out_ == shards_) {
      throw Error(*first_left_out_);
    }
    return make_tar_table(indexer_.finish(), {list_}, context_.warn);
  }

 private:
  void take(const ListLine& line) {
    const std::string path = local_path(*list_, line, line.text);
    ++shards_;
    SourcePtr shard;
    try {
      shard = files_.source(files_.find(path));
    } catch (const Error& error) {
      leave_out(line_error(*list_, line.number, error));
      return;
    }
    try {
      SourcePtr source = open_tar_source(std::move(shard), context_);
      require_tar(*source);
      indexer_.add_shard(std::move(source));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
      leave_out(error);
    }
  }

  // With --permissive, unless it is all there is.
  void leave_out(const Error& error) {
    if (!context_.permissive || is_want_of_descriptors(error.to_errno())) {
      throw Error(error);
    }
    ++left_out_;
    first_left_out_ = first_left_out_ ? first_left_out_ : std::optional(error);
    context_.warn(fmt::format("{}; the shard is left out", error.what()));
  }

  SourcePtr list_;
  OpenContext& context_;
  NamedFiles files_;
  TarIndexer indexer_;
  std::uint64_t shards_ = 0;
  std::uint64_t left_out_ = 0;
  std::optional<Error> first_left_out_;
};

bool recognises(const Location& location) {
  return location.source != nullptr && looks_like_list(*location.source);
}

std::shared_ptr<const RecordTable> open(const Location& location, OpenContext& context) {
  if (location.source == nullptr) {
    throw file_error(ErrorKind::kUnsupported, location.path,
                     "is a directory, expected a list (data.list)");
  }
  const std::size_t slash = location.path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : location.path.substr(0, slash + 1);
  return is_raw_list(*location.source) ? open_raw_list(location.source, folder, context)
                                       : ShardList(location.source, folder, context).open();
}

}  // namespace

const Format kWenet = {
    .name = "wenet", .extensions = {"list"}, .recognises = recognises, .open = open};

}  // namespace npyfs
