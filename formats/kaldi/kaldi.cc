// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/kaldi.h"

#include <fmt/format.h>

#include <array>

#include "formats/bytes/inflate.h"
#include "formats/kaldi/ark.h"
#include "formats/kaldi/data_dir.h"
#include "formats/kaldi/scp.h"
#include "formats/kaldi/specifier.h"
#include "formats/kaldi/utt2spk.h"

namespace npyfs {

namespace {

constexpr std::size_t kHeadNbytes = 512;

Wanted wanted_of(const Location& location, const OpenContext& context) {
  const std::string kind = context.decode_kind("x");
  if (auto wanted = parse_wanted(kind)) {
    return *wanted;
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("--decode x={}: {} holds Kaldi objects, expected the name of one", kind,
                          location.path));
}

void require_file(const Location& location) {
  if (location.source == nullptr) {
    throw file_error(ErrorKind::kUnsupported, location.path,
                     "is a directory, expected a file (kaldi: takes data directories)");
  }
}

std::shared_ptr<const RecordTable> open_ark(const Location& location, OpenContext& context) {
  require_file(location);
  return make_kaldi_table(read_ark(location.source, wanted_of(location, context), context));
}

std::shared_ptr<const RecordTable> open_scp(const Location& location, OpenContext& context) {
  require_file(location);
  const std::size_t slash = location.path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : location.path.substr(0, slash + 1);
  return make_kaldi_table(read_scp(location.source, folder, wanted_of(location, context), context));
}

std::shared_ptr<const RecordTable> open_dir(const Location& location, OpenContext& context) {
  if (!location.is_directory) {
    throw file_error(
        ErrorKind::kUnsupported, location.path,
        "is a file, expected a data directory with feats.scp or wav.scp (ark: and scp: "
        "take tables)");
  }
  wanted_of(location, context);
  return open_data_dir(location.path, context);
}

bool recognises_ark(const Location& location) {
  if (location.source == nullptr) {
    return false;
  }
  std::vector<std::byte> head(std::min<std::uint64_t>(kHeadNbytes, location.source->nbytes()));
  location.source->read_at(0, head);
  return looks_like_ark(is_gzip(head) ? inflate_head(*location.source, kHeadNbytes) : head);
}

bool recognises_nothing(const Location& /*location*/) { return false; }

bool recognises_dir(const Location& location) {
  return location.is_directory && is_data_dir(location.path);
}

constexpr std::array<FormatOption, 1> kScriptOptions = {
    {{kAllowPipes, nullptr, "runs commands that scripts name", true}}};

// "ark,s,cs" or "scp,p".
template <bool is_script>
bool takes_specifier(std::string_view words, SourceOptions& said) {
  const auto specifier = parse_table_specifier(words);
  if (!specifier || specifier->is_script != is_script) {
    return false;
  }
  said.permissive = specifier->permissive;
  if (specifier->keys_sorted) {
    said.options[kKeysSorted];
  }
  return true;
}

}  // namespace

const Format kKaldi = {.name = "kaldi",
                       .recognises = recognises_dir,
                       .open = open_dir,
                       .sets_folder = "data",
                       .options = kScriptOptions,
                       .decode_kinds = object_kind_names(),
                       .read_key_map = read_utt2spk};
const Format kArk = {.name = "ark",
                     .extensions = {"ark"},
                     .recognises = recognises_ark,
                     .open = open_ark,
                     .takes_specifier = takes_specifier<false>,
                     .decode_kinds = object_kind_names()};
const Format kScp = {.name = "scp",
                     .extensions = {"scp"},
                     .recognises = recognises_nothing,
                     .open = open_scp,
                     .options = kScriptOptions,
                     .takes_specifier = takes_specifier<true>,
                     .decode_kinds = object_kind_names()};

}  // namespace npyfs
