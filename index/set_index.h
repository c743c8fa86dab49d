// SPDX-License-Identifier: Apache-2.0
//
// The kept index of one data set: a file in the index folder, from which an opening takes the pages
// that fit, and which is written anew if some did not.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "index/index_file.h"

namespace npyfs {

// $XDG_CACHE_HOME/npyfs, or ~/.cache/npyfs; empty where neither is set.
std::string default_index_folder();

struct SetIndexOptions {
  // Where files are kept, made with its parents where it is missing; empty: nowhere.
  std::string folder;
  // Of the program: what another one has found out is not believed.
  std::string version;
  // What tells the data set from others: pages that two openings of one text have in common are
  // found by both.
  std::string set;
  // An index that was made ahead, maybe on another machine; empty: none.
  std::string made_ahead;
  // Keeps what is read again as fast as it is looked up, too; and that nothing can be kept is an
  // error.
  bool keeps_all = false;
  // Finds nothing: all sources are to be read, and checked, anew.
  bool finds_nothing = false;
  // Where the index is written to instead, to be used as `made_ahead`; empty: into the folder. If
  // there is a file already, it must be an index.
  std::string target;
};

// What became of the index of a data set that was opened.
struct IndexResult {
  std::uint64_t hits = 0;     // pages that were found
  std::uint64_t misses = 0;   // that were not
  std::uint64_t too_new = 0;  // of these, that were not kept: their sources had just been written
  std::string path;           // of the file that was written; empty: none was
  std::uint64_t pages = 0;    // that it has
  std::uint64_t nbytes = 0;   // of it
};

// One thread.
class SetIndex : public IndexPages {
 public:
  // Troubles of the folder are none of the data set's: then nothing is kept. Throws what keeps
  // `made_ahead` from being read, or `target` from being made.
  static std::shared_ptr<SetIndex> open(SetIndexOptions options);
  ~SetIndex() override;

  std::optional<PageReader> find(const PageKey& key) override;
  void keep(const PageKey& key, const std::function<void(PageWriter&)>& write) override;
  // After the last keep(): writes the file, if there is anything new worth keeping. Throws only
  // where there is a target.
  IndexResult finish();

 private:
  explicit SetIndex(SetIndexOptions options) : options_(std::move(options)) {}
  void open_folder();
  void start_writing();
  template <typename Action>
  void attempt(const Action& action);
  void add_copy(const PageKey& key, const PageReader& page);
  void write_file();
  void write_stamp(const DiskFile& index_file);
  void clean_folder();
  void give_up() noexcept;
  void read_stamp(const DiskFile& file);
  PageName portable_name(const PageKey& key, const std::string& index_path) const;

  SetIndexOptions options_;
  // Before any source was.
  std::chrono::system_clock::time_point opened_at_ = std::chrono::system_clock::now();
  std::optional<DiskFolder> folder_;  // while it is looked at, or written to
  std::string name_;                  // of the file in the folder, without extension
  bool is_usable_ = false;            // the folder
  bool is_stamped_ = false;
  std::shared_ptr<const IndexFile> file_;
  std::shared_ptr<const IndexFile> made_ahead_;
  std::string made_ahead_folder_;
  std::string target_folder_;
  struct Used {
    const PageEntry* entry;
    PageName portable_name;
    bool operator<(const Used& other) const { return entry < other.entry; }
  };
  std::set<Used> used_;  // pages of `file_`
  std::string new_name_;
  std::optional<IndexFileWriter> writer_;
  std::uint64_t source_nbytes_ = 0;  // that its pages were made of
  IndexResult result_;
};

}  // namespace npyfs
