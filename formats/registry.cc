// SPDX-License-Identifier: Apache-2.0

#include "formats/registry.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "formats/ffrecord/ffrecord.h"
#include "formats/kaldi/kaldi.h"
#include "formats/recordio/recordio.h"
#include "formats/tfrecord/tfrecord.h"

namespace npyfs {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "rec" of "shards/train-0.REC.gz".
std::string extension_of(std::string_view path) {
  std::string name = lower(path.substr(path.find_last_of('/') + 1));
  if (name.ends_with(".gz")) {
    name.resize(name.size() - 3);
  }
  const std::size_t dot = name.find_last_of('.');
  return dot == std::string::npos ? std::string() : name.substr(dot + 1);
}

}  // namespace

std::span<const Format> formats() {
  // FFRecord has no magic: it is asked last. Copied on first use, when every row has been built.
  static const std::array<Format, 6> kFormats = {kRecordio, kTfrecord, kKaldi,
                                                 kArk,      kScp,      kFfrecord};
  return kFormats;
}

const Format* find_format(std::string_view name) {
  const std::span<const Format> all = formats();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Format& row) { return row.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool has_extension(const Format& format, std::string_view path) {
  const std::string extension = extension_of(path);
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

}  // namespace npyfs
