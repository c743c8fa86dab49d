// SPDX-License-Identifier: Apache-2.0

#include "formats/tables/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "formats/bytes/error.h"
#include "formats/tables/join.h"

namespace npyfs {

namespace {

// FNV-1a, then the finaliser of SplitMix64, as keys that differ in their last digit only must be
// told apart in all bits. In [0, 1), the same on every machine.
double hash_of(std::string_view key, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : key) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  hash ^= hash >> 31;
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

std::vector<NamedRows> cut_by_share(const RecordTable& table, const SplitRule& rule) {
  std::vector<std::vector<std::uint64_t>> rows(rule.shares.size());
  for (std::uint64_t record = 0; record < table.size(); ++record) {
    const double hash = hash_of(key_text(table, record), rule.seed);
    double end = 0;
    std::size_t split = 0;
    while (split + 1 < rows.size() && hash >= (end += rule.shares[split].second)) {
      ++split;
    }
    rows[split].push_back(record);
  }
  std::vector<NamedRows> cut;
  for (std::size_t split = 0; split < rows.size(); ++split) {
    cut.push_back({rule.shares[split].first, RecordMap::list(rows[split])});
  }
  return cut;
}

// Which list each record is in.
class ListedRecords {
 public:
  ListedRecords(const RecordTable& table, const SplitRule& rule, const std::string& name)
      : table_(table), rule_(rule), name_(name) {}

  std::vector<NamedRows> cut() {
    for (std::size_t list = 0; list < rule_.lists.size(); ++list) {
      for (const std::string& key : rule_.lists[list].second) {
        add(key, list);
      }
    }
    std::vector<NamedRows> cut = {{"train", {}}};
    std::vector<std::vector<std::uint64_t>> rows(rule_.lists.size());
    std::vector<std::uint64_t> listed;
    for (std::uint64_t record = 0; record < table_.size(); ++record) {
      const auto found = keys_.find(key_text(table_, record));
      if (found != keys_.end()) {
        met_[found->second.number] = true;
        listed.push_back(record);
        rows[found->second.list].push_back(record);
      }
    }
    require_all_met();
    for (std::size_t list = 0; list < rows.size(); ++list) {
      if (rule_.lists[list].first == "train") {
        remove_all(listed, rows[list]);
      } else {
        cut.push_back({rule_.lists[list].first, RecordMap::list(rows[list])});
      }
    }
    cut.front().rows = RecordMap::without(listed, table_.size());
    return cut;
  }

 private:
  struct Listed {
    std::size_t list;
    std::size_t number;
  };

  void add(const std::string& key, std::size_t list) {
    const auto [at, is_new] = keys_.emplace(key, Listed{list, keys_.size()});
    if (!is_new && at->second.list != list) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--split-list: '{}' is in the lists of {} and {}, expected one",
                      printable(key), rule_.lists[at->second.list].first, rule_.lists[list].first));
    }
    met_.resize(keys_.size());
  }

  void require_all_met() const {
    for (const auto& [key, listed] : keys_) {
      if (!met_[listed.number]) {
        throw file_error(
            ErrorKind::kCorrupt, name_,
            fmt::format("it has no record '{}', expected each that --split-list {} names",
                        printable(key), rule_.lists[listed.list].first));
      }
    }
  }

  static void remove_all(std::vector<std::uint64_t>& from, const std::vector<std::uint64_t>& what) {
    std::vector<std::uint64_t> kept;
    std::set_difference(from.begin(), from.end(), what.begin(), what.end(),
                        std::back_inserter(kept));
    from = std::move(kept);
  }

  const RecordTable& table_;
  const SplitRule& rule_;
  const std::string& name_;
  std::unordered_map<std::string, Listed> keys_;
  std::vector<bool> met_;
};

}  // namespace

std::vector<NamedRows> cut_splits(const RecordTable& table, const SplitRule& rule,
                                  const std::string& name) {
  return rule.lists.empty() ? cut_by_share(table, rule) : ListedRecords(table, rule, name).cut();
}

}  // namespace npyfs
