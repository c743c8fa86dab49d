// SPDX-License-Identifier: Apache-2.0
//
// Samples of tar shards as records: a field for each extension.

#pragma once

#include <functional>
#include <memory>

#include "formats/archives/tar_index.h"
#include "formats/record_table.h"

namespace npyfs {

// The first of npy, wav, ..., bin that is there bids for the name x, cls, else label, for y.
// `more_sources`: what else the records come from, a list of shards. `warn` is told of extensions
// that make one name (the second gets a number) and of those that are too long for a file name
// (left out).
std::shared_ptr<const RecordTable> make_tar_table(
    TarIndex index, std::vector<SourcePtr> more_sources = {},
    const std::function<void(const std::string&)>& warn = {});

// The shard itself, or what it holds where it is compressed.
SourcePtr open_tar_source(SourcePtr shard, OpenContext& context);

// Whether the file begins as a tar archive does, compressed or not.
bool looks_like_tar(const ByteSource& source);

// Throws kCorrupt, "no tar archive", where `source`, as open_tar_source returned it, is none.
void require_tar(const ByteSource& source);

}  // namespace npyfs
