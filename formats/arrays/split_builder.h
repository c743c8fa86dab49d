// SPDX-License-Identifier: Apache-2.0
//
// The records of one split become its arrays: joined, cut, laid out, named.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/arrays/dataset.h"
#include "formats/arrays/layout.h"
#include "formats/tables/record_map.h"

namespace npyfs {

// The sources of one split that were given with the same ARRAY (or with none), concatenated.
struct SplitMember {
  std::string array;  // empty: all its fields, under their own names
  std::string text;
  std::string format;
  TablePtr table;
  bool permissive = false;
  std::string key_clash;  // which of its files disagree about keys, and how; empty: none do
};

// `sources` are all sources of one split, in order; all are tables. Throws kUsage if the sources of
// one array have several formats.
std::vector<SplitMember> gather_members(const std::vector<const OpenedSource*>& sources,
                                        const FieldChoices& choices,
                                        const std::function<void(const std::string&)>& warn);

// One thread. A copy is independent of the original. `options` and `warn` must outlive it.
class SplitBuilder {
 public:
  SplitBuilder(std::string name, std::vector<SplitMember> members, const DatasetOptions& options,
               const std::function<void(const std::string&)>& warn)
      : options_(options), warn_(warn), members_(std::move(members)) {
    split_.name = std::move(name);
  }

  // Gives every member the rows of the first one, in its order. Call it first.
  void join_members();

  // Keeps only `rows` of the joined members. The split is called `name` from then on.
  void select(const std::string& name, const RecordMap& rows);
  const SplitMember& main_member() const { return members_.front(); }

  // Call it last. Throws kCorrupt if a whole source is damaged, kUnsupported if two arrays would
  // have one name.
  Split build();

  const std::set<std::string>& names_seen() const { return names_seen_; }
  // The arrays that were joined by key.
  const std::set<std::string>& joined() const { return joined_; }
  // The rate of each field that is audio with one rate.
  const std::map<std::string, std::optional<std::uint32_t>>& rates() const { return rates_; }

 private:
  TablePtr mapped_keys(const std::string& map) const;
  bool is_permissive(const SplitMember& member) const;

  // Leaves out of all members what is bad in one, so that rows still belong together.
  void leave_out_known_damage();
  void add_damaged(const RecordTable& table, std::vector<std::uint64_t>& bad) const;
  void leave_out_of_all(const std::vector<std::uint64_t>& rows);

  // Keys that only some files have join nothing, and may not be dropped in silence.
  void settle_keys();

  // `keyed`: the first member's records under the keys they were looked for by.
  void report_missing(const SplitMember& member, const RecordTable& keyed,
                      const std::vector<std::uint64_t>& missing) const;

  // False where records had to be left out, so that all must be laid out again.
  bool lay_out_all();

  // What a member contributes: all its fields, or its main one under the name ARRAY.
  static std::vector<std::pair<std::string, const Field*>> fields_of(const SplitMember& member);
  std::string renamed(const std::string& field) const;

  // `field` may be renamed; what is derived from it (x_offsets) follows.
  void add_array(const std::string& field, LaidOutArray array, const SplitMember& member);
  void add_keys();

  const DatasetOptions& options_;
  const std::function<void(const std::string&)>& warn_;
  std::vector<SplitMember> members_;
  Split split_;
  std::map<std::string, std::string> taken_;  // array name -> what it is
  std::set<std::string> names_seen_;
  std::set<std::string> joined_;
  std::map<std::string, std::optional<std::uint32_t>> rates_;
};

}  // namespace npyfs
