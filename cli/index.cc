// SPDX-License-Identifier: Apache-2.0

#include "cli/index.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/load.h"
#include "formats/bytes/error.h"

namespace npyfs {

int run_index(const CommandLine& command_line) {
  if (command_line.index_target.empty() && index_folder(command_line).empty()) {
    throw Error(ErrorKind::kUsage,
                "npyfs index: there is no folder to keep it in, expected -o FILE or --index-dir "
                "DIR");
  }
  const LoadedDataset loaded(command_line);
  const IndexResult& index = loaded.index;
  const std::string text =
      index.path.empty()
          ? fmt::format("{} pages were known; there is nothing to write", index.hits)
          : fmt::format("{}: {} pages, {} bytes", printable(index.path), index.pages, index.nbytes);
  std::printf("%s\n", text.c_str());
  if (index.too_new > 0) {
    print_warning(
        fmt::format("{} pages are not kept, as their sources were written to a moment ago, "
                    "or will have been; run it again",
                    index.too_new));
  }
  return 0;
}

}  // namespace npyfs
