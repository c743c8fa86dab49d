// SPDX-License-Identifier: Apache-2.0
//
// What a format finds out by reading its sources, found again in the kept index.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/index_page.h"
#include "formats/opening.h"

namespace npyfs {

// What every page depends on that the user said.
PageKey page_key_of(const OpenContext& context);

// Nothing where nothing is kept: there is no index, or a source that is no file. `kind` names what
// is in the page, and its version: "tar 1".
std::optional<PageKey> page_key(std::string_view kind, std::span<const SourcePtr> sources,
                                const OpenContext& context);

// The warnings of a scan are part of what it finds: who finds the page hears them, too.
class ScanWarnings {
 public:
  // A context whose warnings are told and noted here. Neither this nor `context` may go before it.
  OpenContext noting(const OpenContext& context);
  void write(PageWriter& page) const;
  static ScanWarnings read(PageReader& page);
  void tell(const OpenContext& context) const;

 private:
  std::vector<std::string> texts_;
};

// What a scan of `sources` finds: `scan(context)` returns it, or `read(page)` where an earlier scan
// was kept. Its type has write(PageWriter&) const. Throws what scan() throws, and kIo where the
// index has to be written and cannot be. One thread.
template <typename Scan, typename Read>
auto find_or_scan(std::string_view kind, std::span<const SourcePtr> sources, OpenContext& context,
                  const Scan& scan, const Read& read) {
  const std::optional<PageKey> key = page_key(kind, sources, context);
  if (!key) {
    return scan(context);
  }
  ScanWarnings warnings;
  auto kept = find_page(*context.index, *key, [&](PageReader& page) {
    warnings = ScanWarnings::read(page);
    return read(page);
  });
  if (kept) {
    warnings.tell(context);
    return std::move(*kept);
  }
  warnings = {};
  OpenContext noting = warnings.noting(context);
  auto found = scan(noting);
  context.index->keep(*key, [&](PageWriter& page) {
    warnings.write(page);
    found.write(page);
  });
  return found;
}

}  // namespace npyfs
