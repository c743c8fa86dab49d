// SPDX-License-Identifier: Apache-2.0
//
// [HFAiLab/ffrecord: ffrecord/package.py]

#include "formats/ffrecord/packed_folder.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/payloads/pickle.h"

namespace npyfs {

namespace {

constexpr std::string_view kMagic = "piouhjgbr";
constexpr std::size_t kMostDepth = 256;
constexpr std::size_t kMostNameNbytes = 4096;
constexpr std::uint64_t kAlwaysAllowedNbytes = std::uint64_t{64} << 20;

// Dicts of names: a number is a file, a dict a folder.
class IndexReader {
 public:
  IndexReader(const PickleTree& tree, PayloadBytes& pickle, std::uint64_t files)
      : tree_(tree),
        pickle_(pickle),
        steps_left_(tree.size()),
        nbytes_left_(kAlwaysAllowedNbytes + 16 * pickle.nbytes()),
        paths_(files) {}

  StringList read() {
    read_folder(tree_.root(), "", 0);
    if (found_ != paths_.size()) {
      throw fault(fmt::format("names {} files, expected {}", found_, paths_.size()));
    }
    StringList list;
    for (const std::string& path : paths_) {
      list.append(path);
    }
    list.shrink();
    return list;
  }

 private:
  static Error fault(const std::string& text) { return {ErrorKind::kUnsupported, text}; }

  void read_folder(PickleRef folder, const std::string& path, std::size_t depth) {
    if (tree_[folder].kind != PickleKind::kDict || depth > kMostDepth) {
      throw fault("is no nested dict of names");
    }
    const auto& items = tree_.items(folder);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      // A folder is met once; the memo could repeat it without end.
      const PickleTree::Node& name = tree_[items[i]];
      if (steps_left_-- == 0 || name.kind != PickleKind::kText || name.nbytes == 0 ||
          name.nbytes > kMostNameNbytes) {
        throw fault("is no nested dict of names");
      }
      const std::string full = path + tree_.bytes_of(items[i], pickle_);
      if (full.size() > nbytes_left_) {
        throw fault("names files by paths that are too long");
      }
      nbytes_left_ -= full.size();
      if (tree_[items[i + 1]].kind == PickleKind::kInteger) {
        add_file(tree_[items[i + 1]].number, full);
      } else {
        read_folder(items[i + 1], full + "/", depth + 1);
      }
    }
  }

  void add_file(std::uint64_t sample, const std::string& path) {
    if (sample >= paths_.size() || !paths_[sample].empty()) {
      throw fault(fmt::format("gives sample {} a name, expected one of {} that has none yet",
                              static_cast<std::int64_t>(sample), paths_.size()));
    }
    paths_[sample] = path;
    ++found_;
  }

  const PickleTree& tree_;
  PayloadBytes& pickle_;
  std::uint64_t steps_left_;
  std::uint64_t nbytes_left_;
  std::vector<std::string> paths_;
  std::uint64_t found_ = 0;
};

}  // namespace

bool is_folder_index(const ByteSource& source, std::uint64_t offset, std::uint64_t nbytes) {
  if (nbytes <= kMagic.size()) {
    return false;
  }
  std::string head(kMagic.size(), '\0');
  source.read_at(offset, std::as_writable_bytes(std::span(head)));
  return head == kMagic;
}

std::optional<StringList> read_folder_index(const ByteSource& source, std::uint64_t offset,
                                            std::uint64_t nbytes, std::uint64_t files,
                                            const std::function<void(const std::string&)>& warn) {
  WindowReader window(source);
  SourceBytes pickle(source, window, offset, nbytes);
  try {
    const PickleTree tree = parse_pickle(pickle, kMagic.size());
    return IndexReader(tree, pickle, files).read();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt && error.kind() != ErrorKind::kUnsupported) {
      throw;
    }
    warn(
        fmt::format("{} at byte {}: the last sample begins as the index of a packed folder, but "
                    "{}; all samples are shown, without names",
                    printable(source.name()), offset, error.what()));
    return std::nullopt;
  }
}

}  // namespace npyfs
