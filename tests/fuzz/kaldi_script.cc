// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a Kaldi script: its lines, and where each says that its object lies.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

#include "formats/bytes/error.h"
#include "formats/kaldi/location.h"
#include "formats/kaldi/script_lines.h"

namespace {

bool lies_in(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npyfs;  // NOLINT
  const auto bytes = std::as_bytes(std::span(data, size));
  const MemorySource script("fuzz", {bytes.begin(), bytes.end()});
  try {
    OpenContext context;
    context.warn = [](const std::string&) {};
    NamedFiles files(".", context);
    RefusedLines refused(script, context);
    const ScriptLines lines = read_script_lines(script, context, files, refused);
    if (lines.keys.size() != lines.places.size()) {
      std::abort();
    }
    for (const Place& place : lines.places) {
      const bool known = place.refused || (place.is_command() ? place.offset < lines.commands.size()
                                                              : place.file < files.size());
      if (!known || (place.range != Place::kNone && place.range >= lines.ranges.size())) {
        std::abort();  // a place that nothing is known of
      }
    }
  } catch (const Error&) {  // what is refused is refused by this alone
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ScriptLocation location = parse_location(text);
  if (!lies_in(location.path, text) || (location.range && !lies_in(*location.range, text)) ||
      (location.kind == ScriptLocation::Kind::kRefused) != (location.refusal != nullptr)) {
    std::abort();
  }
  return 0;
}
