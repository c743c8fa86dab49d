// SPDX-License-Identifier: Apache-2.0

#include "cli/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cli/arguments.h"
#include "cli/source_spec.h"
#include "formats/registry.h"

namespace npyfs {

namespace {

using Place = OptionRow::Place;

template <typename Map, typename Parse>
void assign(Map& map, std::string_view option, const std::string& text, Parse parse) {
  const auto [name, value] = parse_assignment(option, text);
  map.insert_or_assign(name, parse(option, value));
}

// `option` ends with the word: "--shuffle", "-o shuffle".
void apply_view_word(CommandLine& line, std::string_view option, const std::string& text) {
  const std::string_view word = option.substr(option.find_last_of("- ") + 1);
  if (line.view_words.take(word, word == "pad" ? "" : text)) {
    return;
  }
  const std::string_view expected = ViewWords::expected(word);
  throw Error(ErrorKind::kUsage,
              expected.empty()
                  ? fmt::format("{} stands there twice, expected it once", option)
                  : fmt::format("{} {}: expected {}, once", option, printable(text), expected));
}

void apply_attr(CommandLine& line, std::string_view option, const std::string& text) {
  line.dataset.attributes.push_back(parse_attribute(option, text));
}

void choose(CommandLine& line, std::string_view option, CacheAction action) {
  if (line.cache_action != CacheAction::kList && line.cache_action != action) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: expected one of --list, --drop, --check", option));
  }
  line.cache_action = action;
}

constexpr unsigned kMostThreads = 1024;
constexpr std::uint64_t kMostSeed = std::numeric_limits<std::uint64_t>::max();

const std::array<OptionRow, 42> kOwnRows = {{
    {Place::kDataset, "layout", "NAME=KIND", nullptr,
     "stack, concat, pad, bytes (default: stack or concat)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       assign(line.dataset.fields.layout, option, text, parse_layout);
     }},
    {Place::kDataset, "dtype", "NAME=DTYPE", nullptr,
     "each record is raw items: float32 (default: uint8)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       assign(line.dataset.fields.dtype, option, text, parse_dtype);
     }},
    {Place::kDataset, "shape", "NAME=DIMS", nullptr, "of this shape: 3,224,224 (default: one axis)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       assign(line.dataset.fields.shape, option, text, parse_shape);
     }},
    {Place::kDataset, "pad-value", "V", nullptr, "what fills a padded array (default: 0)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.dataset.fields.pad_value = parse_number_text(option, text);
     }},
    {Place::kDataset, "name", "OLD=NEW", nullptr, "renames a field's array",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       assign(line.dataset.fields.rename, option, text, parse_array_name);
     }},
    {Place::kDataset, "decode", "NAME=KIND", nullptr,
     "raw: stored bytes; or what they are: jpg, token, ...",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       assign(line.dataset.fields.decode, option, text, parse_decode_kind);
     }},
    {Place::kDataset, "image", "HxW[xC]", nullptr,
     "resizes and crops images to one size (and channels)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.dataset.fields.image = parse_image_size(option, text);
     }},
    {Place::kDataset, "map", "NAME=TABLE", nullptr,
     "joins by what TABLE (utt2spk) says of each key",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       assign(line.dataset.maps, option, text,
              [](std::string_view, const std::string& value) { return value; });
     }},
    {Place::kDataset, "base-dir", "DIR", nullptr,
     "where relative paths in scripts are looked for last",
     [](CommandLine& line, std::string_view /*option*/, const std::string& text) {
       line.base_dir = text;
     }},
    {Place::kDataset, "allow-outside", nullptr, nullptr,
     "with allow_other, opens files outside the folder, too",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.allow_outside = true;
     }},
    {Place::kDataset, "attr", "NAME=JSON", nullptr, "adds or replaces an attribute in attrs.*",
     apply_attr},
    {Place::kDataset, "class-names", "FILE", nullptr, "attribute class_names, one name a line",
     [](CommandLine& line, std::string_view /*option*/, const std::string& text) {
       line.dataset.class_names = read_lines(text);
       line.format_options["class-names"] = *line.dataset.class_names;
     }},
    {Place::kDataset, "split", "NAME=P,...", nullptr,
     "cuts one split by the hash of keys: train=0.8,val=0.2",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.dataset.split_rule.shares = parse_shares(option, text);
     }},
    {Place::kDataset, "split-seed", "S", nullptr, "other splits of the same shares (default: 0)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.dataset.split_rule.seed = parse_count(option, text, kMostSeed);
     }},
    {Place::kDataset, "split-list", "NAME=FILE", nullptr,
     "cuts one split by keys, one a line; the rest is train",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       const auto [name, file] = parse_assignment(option, text);
       std::string split = parse_split_name(option, name);
       line.dataset.split_rule.lists.emplace_back(std::move(split), read_lines(file));
     }},
    {Place::kDataset, "rows", "A:B", nullptr, "only records A to B-1 of every split",
     apply_view_word},
    {Place::kDataset, "shuffle", "S", nullptr, "permutes the records of every split by a seed",
     apply_view_word},
    {Place::kDataset, "block", "N|shard", nullptr,
     "with --shuffle: keeps N records or shards together", apply_view_word},
    {Place::kDataset, "epoch", "E", nullptr, "with --shuffle: another order in each epoch",
     apply_view_word},
    {Place::kDataset, "part", "RofW", nullptr,
     "only the R-th of W near-equal parts, counted from 0", apply_view_word},
    {Place::kDataset, "rank", "R", nullptr, "the same as --part, with --world-size",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.part.emplace(line.part.value_or(Part())).rank =
           parse_count(option, text, kMostWorldSize - 1);
     }},
    {Place::kDataset, "world-size", "W", nullptr, "how many parts there are (default: 1)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.part.emplace(line.part.value_or(Part())).world_size =
           parse_count(option, text, kMostWorldSize);
     }},
    {Place::kDataset, "equal", "drop|wrap", nullptr,
     "makes parts equally long by the last or first records", apply_view_word},
    {Place::kDataset, "pad", nullptr, nullptr, "pads ragged arrays to their longest record",
     apply_view_word},
    {Place::kDataset, "verify", "WHEN", nullptr,
     "checks checksums: read, mount or never (default: read)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.dataset.verify = parse_verify(option, text);
     }},
    {Place::kDataset, "permissive", nullptr, nullptr,
     "leaves out what is known bad (default: refuse, or EIO)",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.dataset.permissive = true;
     }},
    {Place::kDataset, "cache-size", "BYTES", nullptr,
     "decoded data in memory (default: a quarter, most 4G)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.cache_nbytes = parse_nbytes(option, text);
     }},
    {Place::kFolder, "cache-dir", "DIR", nullptr,
     "keeps arrays that were read, and decoded shards, here",
     [](CommandLine& line, std::string_view /*option*/, const std::string& text) {
       if (text.empty()) {
         throw Error(ErrorKind::kUsage, "--cache-dir: it is empty, expected a folder");
       }
       line.cache_dir = text;
     }},
    {Place::kFolder, "cache-dir-size", "BYTES", nullptr,
     "of the arrays there (default: 80 % of what is free)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.cache_dir_nbytes = parse_nbytes(option, text);
     }},
    {Place::kDataset, "index-dir", "DIR", nullptr,
     "folder of the kept index, or none\n(default: npyfs in $XDG_CACHE_HOME or ~/.cache)",
     [](CommandLine& line, std::string_view /*option*/, const std::string& text) {
       if (text.empty()) {
         throw Error(ErrorKind::kUsage, "--index-dir: it is empty, expected a folder or none");
       }
       line.index_dir = text == "none" ? "" : text;
     }},
    {Place::kDataset, "index", "FILE", nullptr, "the kept index that npyfs index -o has written",
     [](CommandLine& line, std::string_view /*option*/, const std::string& text) {
       line.index_file = text;
     }},
    {Place::kDataset, "header-align", "BYTES", nullptr,
     "data of every .npy begins at a multiple (default: 64)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.header_align = parse_header_align(option, text);
     }},
    {Place::kMount, "fill", nullptr, nullptr,
     "completes the arrays in --cache-dir in the background",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.fill = true;
     }},
    {Place::kThreads, "threads", "N", nullptr,
     "for reads (default: one per core; mount: at least 4)",
     [](CommandLine& line, std::string_view option, const std::string& text) {
       line.threads = static_cast<unsigned>(parse_count(option, text, kMostThreads));
     }},
    {Place::kMount, "foreground", nullptr, "f", "stays in front, logs to stderr (default: syslog)",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.foreground = true;
     }},
    {Place::kMount, "debug", nullptr, "d", "as -f, and logs every operation",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.debug = true;
       line.foreground = true;
     }},
    {Place::kReport, "json", nullptr, nullptr, "prints JSON (default: a table, or lines)",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.json = true;
     }},
    {Place::kQuiet, "quiet", nullptr, nullptr, "fill: shows no progress, only what is wrong",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.quiet = true;
     }},
    {Place::kWatch, "watch", nullptr, nullptr, "stats: again every second",
     [](CommandLine& line, std::string_view /*option*/, const std::string& /*text*/) {
       line.watch = true;
     }},
    {Place::kCache, "list", nullptr, nullptr, "cache: what is kept (default)",
     [](CommandLine& line, std::string_view option, const std::string& /*text*/) {
       choose(line, option, CacheAction::kList);
     }},
    {Place::kCache, "drop", nullptr, nullptr, "cache: removes arrays, all or those named",
     [](CommandLine& line, std::string_view option, const std::string& /*text*/) {
       choose(line, option, CacheAction::kDrop);
     }},
    {Place::kCache, "check", nullptr, nullptr, "cache: reads all, removes what is damaged",
     [](CommandLine& line, std::string_view option, const std::string& /*text*/) {
       choose(line, option, CacheAction::kCheck);
     }},
}};

// A row for each option that formats take, and those above.
std::vector<OptionRow> make_rows() {
  std::vector<OptionRow> rows(kOwnRows.begin(), kOwnRows.end());
  for (const Format& format : formats()) {
    for (const FormatOption& option : format.options) {
      const bool is_known = std::any_of(rows.begin(), rows.end(), [&](const OptionRow& row) {
        return std::string_view(row.name) == option.name;
      });
      if (is_known) {
        continue;
      }
      const bool is_flag = option.value == nullptr;
      rows.push_back({Place::kDataset, option.name, option.value, nullptr, option.help,
                      [name = option.name, is_flag](CommandLine& line, std::string_view /*option*/,
                                                    const std::string& text) {
                        std::vector<std::string>& values = line.format_options[name];
                        if (!is_flag) {
                          values.push_back(text);
                        }
                      }});
    }
  }
  return rows;
}

// One option's lines of the help, the help texts in one column.
void print_option(std::string& out, std::string_view left, std::string_view help) {
  constexpr int kWidth = 26;
  out += fmt::format("  {:<{}}", left, kWidth - 2);
  while (true) {
    const std::size_t end = help.find('\n');
    out += fmt::format("{}\n", help.substr(0, end));
    if (end == std::string_view::npos) {
      return;
    }
    out += std::string(kWidth, ' ');
    help.remove_prefix(end + 1);
  }
}

void print_rows(std::string& out, Place first, Place last) {
  for (const OptionRow& row : option_rows()) {
    if (row.place < first || row.place > last) {
      continue;
    }
    const std::string dashes =
        row.shorthand != nullptr ? fmt::format("-{}, --", row.shorthand) : std::string("--");
    const std::string left = row.value != nullptr
                                 ? fmt::format("{}{} {}", dashes, row.name, row.value)
                                 : dashes + row.name;
    print_option(out, left, row.help);
  }
}

}  // namespace

std::span<const std::pair<std::string_view, Verb>> verbs() {
  static constexpr std::array<std::pair<std::string_view, Verb>, 7> kVerbs = {
      {{"mount", Verb::kMount},
       {"umount", Verb::kUmount},
       {"info", Verb::kInfo},
       {"stats", Verb::kStats},
       {"index", Verb::kIndex},
       {"fill", Verb::kFill},
       {"cache", Verb::kCache}}};
  return kVerbs;
}

std::string_view verb_name(Verb verb) {
  for (const auto& [name, named] : verbs()) {
    if (named == verb) {
      return name;
    }
  }
  return {};
}

std::span<const Verb> verbs_of(Place place) {
  static constexpr std::array kOfTree = {Verb::kMount, Verb::kInfo, Verb::kIndex, Verb::kFill};
  static constexpr std::array kOfFolder = {Verb::kMount, Verb::kInfo, Verb::kFill, Verb::kCache};
  static constexpr std::array kOfMount = {Verb::kMount};
  static constexpr std::array kThreaded = {Verb::kMount, Verb::kFill};
  static constexpr std::array kReporting = {Verb::kInfo, Verb::kStats, Verb::kFill, Verb::kCache};
  static constexpr std::array kOfStats = {Verb::kStats};
  static constexpr std::array kLong = {Verb::kFill};
  static constexpr std::array kOfCache = {Verb::kCache};
  switch (place) {
    case Place::kDataset:
      return kOfTree;
    case Place::kFolder:
      return kOfFolder;
    case Place::kMount:
      return kOfMount;
    case Place::kThreads:
      return kThreaded;
    case Place::kReport:
      return kReporting;
    case Place::kQuiet:
      return kLong;
    case Place::kWatch:
      return kOfStats;
    case Place::kCache:
      return kOfCache;
  }
  return {};
}

std::span<const OptionRow> option_rows() {
  static const std::vector<OptionRow> rows = make_rows();
  return rows;
}

void apply_option(CommandLine& command_line, const OptionRow& row, std::string_view option,
                  const std::string& value) {
  row.apply(command_line, option, value);
  constexpr std::array<std::string_view, 6> kNotShaping = {
      "allow-outside", "cache-size", "header-align", "index", "index-dir", "verify"};
  if (row.place == Place::kDataset &&
      std::find(kNotShaping.begin(), kNotShaping.end(), row.name) == kNotShaping.end()) {
    command_line.shaping.push_back(fmt::format("{}={}", row.name, value));
  }
}

const OptionRow* find_option(std::string_view name) {
  const std::span<const OptionRow> rows = option_rows();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const OptionRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const OptionRow& row : option_rows()) {
    names.emplace_back(row.name);
  }
  return names;
}

std::string help_text() {
  std::string out =
      "npyfs shows ML data sets as .npy files, without copying them.\n"
      "usage: npyfs [mount] [OPTIONS] SOURCE... MOUNTPOINT\n"
      "       npyfs info [OPTIONS] SOURCE...    what a mount would show\n"
      "       npyfs index [OPTIONS] SOURCE... [-o FILE]    finds records ahead\n"
      "       npyfs fill --cache-dir DIR [OPTIONS] SOURCE...    keeps its arrays ahead\n"
      "       npyfs cache --cache-dir DIR [OPTIONS] [NAME...]    what is kept there\n"
      "       npyfs stats MOUNTPOINT    what a mount has done\n"
      "       npyfs umount MOUNTPOINT...\n"
      "SOURCE is [SPLIT[/ARRAY]=][FORMAT:]LOCATION. LOCATION is a file, a directory,\n"
      "shard-{000..123}.rec, 'a*.rec' or 'a.rec;b.rec'. SPLIT is train, val, test or\n"
      "any other name (default: by file names, else train). FORMAT is found by content,\n"
      "then by extension, or is one of\n  ";
  std::string formats = format_names();
  std::erase(formats, ',');  // or the line would be too long
  out += formats + "\n";
  out += "Data (NAME is an array, x for the record itself; BYTES are 4096, 64K, 1.5G):\n";
  print_rows(out, Place::kDataset, Place::kFolder);
  out += "Mount:\n";
  print_rows(out, Place::kMount, Place::kThreads);
  print_option(out, "-o NAME[=VALUE],...", "mount(8)'s, long ones, source=SOURCE, no_passthrough");
  out += "Other:\n";
  print_rows(out, Place::kReport, Place::kCache);
  print_option(out, "-h, --help", "prints this");
  print_option(out, "-V, --version", "prints the version");
  out += "Exit codes: 0 done, 1 refused or failed, 2 wrong usage.\n";
  return out;
}

}  // namespace npyfs
