// SPDX-License-Identifier: Apache-2.0
//
// Members of tar shards grouped into samples, as WebDataset and WeNet group them: about 12 bytes a
// member, and the key of each sample.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/archives/tar_walk.h"
#include "formats/bytes/extent_column.h"
#include "formats/bytes/fault_tally.h"
#include "formats/bytes/string_list.h"
#include "formats/opening.h"

namespace npyfs {

enum class TarGrouping {
  // A name is split at the first dot behind its last slash; extensions are lower-cased; a field
  // twice in a sample is an error; links are left out.
  kWebDataset,
  // At the last dot of all; audio is one field whatever its extension; of two of a field the last
  // wins; links are followed within their archive; text is stripped of blanks.
  kWenet,
};

struct SplitName {
  std::string_view key;
  std::string_view extension;
};
// Nothing for names that make no sample, metadata (__name__) among them.
std::optional<SplitName> split_member_name(std::string_view name, TarGrouping grouping);
bool is_tar_metadata(std::string_view name);

// What WeNet's readers take for audio.
bool is_wenet_audio(std::string_view extension);

// One extension and its members. Built by one thread, then immutable.
struct TarPart {
  struct Sparse {
    std::uint64_t ordinal = 0;
    std::vector<SparsePiece> pieces;
  };
  std::string extension;
  ExtentColumn places;  // of sparse members: where the first stored byte lies, and the whole size
  PageArray<std::uint64_t> records;  // that have it, ascending; empty: all up to places.size()
  std::vector<Sparse> sparse;        // ascending
  // Where each lies without the blanks around it, where any has some; else empty.
  ExtentColumn stripped;
  bool any_stripped = false;

  // The ordinal of the record's member in `places`.
  std::optional<std::uint64_t> find(std::uint64_t record) const;
  const Sparse* find_sparse(std::uint64_t ordinal) const;

  void write(PageWriter& page) const;
  // Throws kCorrupt where the page holds none.
  static TarPart read(PageReader& page);
};

struct TarIndex {
  TarGrouping grouping = TarGrouping::kWebDataset;
  std::vector<SourcePtr> sources;            // one a shard
  std::vector<std::uint64_t> first_records;  // of each shard
  StringList keys;
  std::vector<TarPart> parts;

  std::uint64_t size() const { return keys.size(); }
  const ByteSource& source_of(std::uint64_t record) const;

  // All but the grouping and the sources.
  void write(PageWriter& page) const;
  // Of one WebDataset shard. Throws kCorrupt where the page holds no index of one.
  static TarIndex read(PageReader& page, SourcePtr source);
};

// The index of a WebDataset shard: kept, or made by a TarIndexer, whose errors it throws.
TarIndex index_tar(const SourcePtr& shard, OpenContext& context);

// Adds shards to an index, one after another; a sample ends where its shard ends.
class TarIndexer {
 public:
  TarIndexer(TarGrouping grouping, OpenContext& context);

  // Throws kCorrupt where the shard is damaged; with context.permissive what is whole before the
  // damage is kept, and a shard without any of it refused.
  void add_shard(SourcePtr source);
  TarIndex finish();

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t nbytes = 0;
    bool sparse = false;
    std::vector<SparsePiece> pieces;
  };
  struct Pending {
    std::size_t part = 0;
    Place place;
  };
  struct LinkTarget {
    Place place;
    std::string next;  // of a link: the name it stands for
  };

  void take(const TarMember& member);
  void take_file(const TarMember& member, const Place& place);
  std::optional<Place> follow(const TarMember& member);
  void read_link_targets();
  void begin_sample(std::string_view key);
  void end_sample();
  void settle_after(const TarWalk& walk);
  bool is_whole() const;
  std::size_t find_part(std::string_view extension);
  bool take_twice(std::size_t part, std::string_view extension, const TarMember& member);
  void append(TarPart& part, std::uint64_t record, const Place& place);
  void append_stripped(TarPart& part, const Place& place);
  void leave_out(const TarMember& member, const std::string& why);
  void say_left_out();
  void warn(const std::string& text) const;

  TarGrouping grouping_;
  OpenContext& context_;
  TarIndex index_;
  std::unordered_map<std::string, std::size_t> part_numbers_;

  // The shard being read.
  const ByteSource* source_ = nullptr;
  std::unordered_map<std::string, LinkTarget> link_targets_;
  bool link_targets_read_ = false;
  FaultTally left_out_{"members", "left out"};
  FaultTally twice_{"samples", "left out"};

  // The sample being read.
  bool open_ = false;
  bool bad_ = false;
  std::string key_;
  std::vector<Pending> pending_;
  std::size_t pending_count_ = 0;
  std::vector<std::size_t> last_parts_;  // of the sample before
  std::size_t next_part_ = 0;            // probably that of the next member
  std::string extension_;
};

}  // namespace npyfs
