// SPDX-License-Identifier: Apache-2.0

#include "formats/registry.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <string>

#include "formats/bytes/packings/packing_table.h"
#include "formats/das/das.h"
#include "formats/ffrecord/ffrecord.h"
#include "formats/hdf5/hdf5.h"
#include "formats/kaldi/kaldi.h"
#include "formats/npy/npy.h"
#include "formats/recordio/recordio.h"
#include "formats/tar/tar.h"
#include "formats/tfrecord/tfrecord.h"
#include "formats/wenet/wenet.h"
#include "formats/zarr/zarr.h"

namespace npyfs {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits off the end of `text`. False where it does not end in one.
bool drop_number(std::string_view& text) {
  const std::size_t before = text.size();
  while (!text.empty() && is_digit(text.back())) {
    text.remove_suffix(1);
  }
  return text.size() < before;
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
  const bool there = text.ends_with(suffix);
  text.remove_suffix(there ? suffix.size() : 0);
  return there;
}

// "mnist.tfrecord" of "mnist.tfrecord-00001-of-00002".
std::string_view without_shard_number(std::string_view name) {
  std::string_view rest = name;
  const bool numbered =
      drop_number(rest) && drop_suffix(rest, "-of-") && drop_number(rest) && drop_suffix(rest, "-");
  return numbered ? rest : name;
}

// Takes the extension of a packing that the format opens off the end of `name`. False where there
// is none.
bool drop_packing(std::string_view& name, const Format& format) {
  for (const Packing& packing : packings()) {
    const std::string extension = std::string(".") + packing.extension;
    if ((format.takes_packings || extension == ".gz") && drop_suffix(name, extension)) {
      return true;
    }
  }
  return false;
}

// "rec" of "shards/train-0.REC.gz", "tfrecord" of "a.tfrecord-00001-of-00002"; the number and the
// extension of the packing stand in either order.
std::string extension_of(std::string_view path, const Format& format) {
  const std::string lowered = lower(path.substr(path.find_last_of('/') + 1));
  std::string_view name = lowered;
  const bool packed = drop_packing(name, format);
  name = without_shard_number(name);
  if (!packed) {
    drop_packing(name, format);
  }
  const std::size_t dot = name.find_last_of('.');
  return dot == std::string_view::npos ? std::string() : std::string(name.substr(dot + 1));
}

// The first row that says something of `member`: one does.
template <typename Member>
const Format& first_with(Member Format::*member) {
  const std::span<const Format> all = formats();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Format& row) { return row.*member != nullptr; });
  assert(found != all.end());
  return *found;
}

}  // namespace

std::span<const Format> formats() {
  // FFRecord has no magic: it is asked last. Copied on first use, when every row has been built.
  static const std::array rows = {kTar, kWenet, kRecordio, kTfrecord, kKaldi, kHdf5,
                                  kDas, kZarr,  kNpy,      kArk,      kScp,   kFfrecord};
  return rows;
}

const Format* find_format(std::string_view name) {
  const std::span<const Format> all = formats();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Format& row) { return row.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool names_no_paths(const Format& format) {
  static const std::array names = {kTar.name, kRecordio.name, kTfrecord.name, kFfrecord.name};
  return std::find(names.begin(), names.end(), std::string_view(format.name)) != names.end();
}

bool has_extension(const Format& format, std::string_view path) {
  const std::string extension = extension_of(path, format);
  return std::find(format.extensions.begin(), format.extensions.end(), extension) !=
         format.extensions.end();
}

const Format* detect_format(const Location& location) {
  for (const Format& format : formats()) {
    if (format.recognises(location)) {
      return &format;
    }
  }
  for (const Format& format : formats()) {
    if (!location.is_directory && has_extension(format, location.path)) {
      return &format;
    }
  }
  return nullptr;
}

std::optional<KeyMap> read_key_map(const ByteSource& file) {
  return first_with(&Format::read_key_map).read_key_map(file);
}

const RowAttributes& row_attributes() {
  return *first_with(&Format::row_attributes).row_attributes;
}

}  // namespace npyfs
