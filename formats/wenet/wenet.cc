// SPDX-License-Identifier: Apache-2.0

#include "formats/wenet/wenet.h"

#include <fmt/format.h>

#include <cerrno>

#include "formats/archives/tar_index.h"
#include "formats/archives/tar_table.h"
#include "formats/named_files.h"
#include "formats/wenet/list_lines.h"
#include "formats/wenet/raw_list.h"

namespace npyfs {

namespace {

std::shared_ptr<const RecordTable> open_shards(const SourcePtr& list, const std::string& folder,
                                               OpenContext& context) {
  NamedFiles files(folder, context);
  TarIndexer indexer(TarGrouping::kWenet, context);
  std::uint64_t shards = 0;
  for_each_line(*list, [&](const ListLine& line) {
    const std::string path = local_path(*list, line, line.text);
    ++shards;
    SourcePtr shard;
    try {
      shard = files.source(files.find(path));
    } catch (const Error& error) {
      const Error placed = unopened_error(*list, line.number, error);
      if (!context.permissive || error.to_errno() == EMFILE) {
        throw placed;
      }
      context.warn(std::string(placed.what()) + "; left out");
      return;
    }
    SourcePtr source = open_tar_source(std::move(shard), context);
    require_tar(*source);
    indexer.add_shard(std::move(source));
  });
  if (shards == 0) {
    throw file_error(ErrorKind::kCorrupt, list->name(),
                     "the list has no line, expected the path of a shard on each");
  }
  return make_tar_table(indexer.finish(), {list});
}

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
                                       : open_shards(location.source, folder, context);
}

}  // namespace

const Format kWenet = {"wenet", {"list"}, recognises, open};

}  // namespace npyfs
