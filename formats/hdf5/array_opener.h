// SPDX-License-Identifier: Apache-2.0
//
// What is described of an array of an HDF5 file, made into one that can be read, whatever other
// files and arrays it is made of.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/chunk_grid.h"
#include "formats/hdf5/description.h"
#include "formats/hdf5/file_set.h"
#include "formats/hdf5/link_follower.h"
#include "formats/hdf5/patience.h"
#include "formats/opening.h"
#include "formats/store.h"

namespace npyfs {

// One thread.
class ArrayOpener {
 public:
  // All outlive it; the arrays are of `context`'s cache.
  ArrayOpener(OpenContext& context, const Patience& patience, FileSet& files, LinkFollower& links)
      : context_(context), patience_(patience), files_(files), links_(links) {}

  // The array, of sequences also where they begin. Throws kUnsupported, kTooLarge and kCorrupt for
  // what concerns it alone, and as LinkFollower.
  std::vector<StoredArray> open(LinkedFile& file, ArrayDescription& array);

 private:
  using GridPtr = std::shared_ptr<const ChunkGrid>;

  // What boxes are taken of.
  struct SourceArray {
    GridPtr grid;  // null: there is no such array
    std::vector<SourcePtr> sources;
  };

  // `sources` gets what the array reads besides the file itself.
  GridPtr make_grid(LinkedFile& file, const ArrayDescription& array,
                    std::vector<SourcePtr>& sources);
  GridPtr make_virtual(LinkedFile& file, const ArrayDescription& array,
                       const VirtualStorage& storage, std::vector<SourcePtr>& sources);
  // Null for one that is not there, which is the fill value, as for libhdf5.
  LinkedFile* find_source_file(LinkedFile& from, const std::string& name);
  // Described, and its index read, once however many boxes are taken of it. Null likewise.
  const SourceArray* source_array(LinkedFile& file, const std::string& path);

  OpenContext& context_;
  const Patience& patience_;
  FileSet& files_;
  LinkFollower& links_;
  // By file and path.
  std::map<std::pair<const LinkedFile*, std::string>, SourceArray> source_arrays_;
};

}  // namespace npyfs
