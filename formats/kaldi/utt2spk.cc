// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/utt2spk.h"

#include <fmt/format.h>

#include "formats/bytes/line_reader.h"
#include "formats/bytes/words.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostMapLineNbytes = 1 << 20;

}  // namespace

std::optional<KeyMap> read_utt2spk(const ByteSource& file) {
  KeyMap map;
  LineReader lines(file, kMostMapLineNbytes);
  for (std::string_view line; lines.next(line);) {
    const auto fault = [&](const std::string& what) {
      return corrupt_at(file.name(), lines.offset(),
                        fmt::format("line {} {}", lines.number(), what));
    };
    std::size_t at = 0;
    const std::string_view key = next_word(line, at);
    const std::string_view value = next_word(line, at);
    if (value.empty() || !next_word(line, at).empty()) {
      throw fault("has not two words, expected a key and its value");
    }
    if (!map.emplace(key, value).second) {
      throw fault(fmt::format("has key '{}', expected it once, as it stands further above too",
                              printable(key)));
    }
  }
  return map.empty() ? std::nullopt : std::optional(std::move(map));
}

}  // namespace npyfs
