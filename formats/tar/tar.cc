// SPDX-License-Identifier: Apache-2.0

#include "formats/tar/tar.h"

#include "formats/archives/tar_index.h"
#include "formats/archives/tar_table.h"

namespace npyfs {

namespace {

bool recognises(const Location& location) {
  return location.source != nullptr && looks_like_tar(*location.source);
}

std::shared_ptr<const RecordTable> open(const Location& location, OpenContext& context) {
  if (location.source == nullptr) {
    throw file_error(ErrorKind::kUnsupported, location.path,
                     "is a directory without tar shards, expected a shard");
  }
  const SourcePtr source = open_tar_source(location.source, context);
  return make_tar_table(index_tar(source, context), {}, context.warn);
}

}  // namespace

const Format kTar = {.name = "tar",
                     .extensions = {"tar", "tgz", "tbz2", "txz", "tzst", "tlz4"},
                     .takes_packings = true,
                     .recognises = recognises,
                     .open = open};

}  // namespace npyfs
