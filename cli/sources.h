// SPDX-License-Identifier: Apache-2.0
//
// The SOURCE arguments of a command line, opened.

#pragma once

#include <string>
#include <vector>

#include "formats/arrays/dataset.h"
#include "formats/opening.h"

namespace npyfs {

// Opens every file that the SOURCEs stand for; one entry per SOURCE and split, in the order of the
// command line. Wrong usage is found before anything is opened. Throws kUsage for what no SOURCE
// can mean, kNotFound for files that are missing, kUnsupported for files that no format recognises
// and for files of several formats in one split. The tables use `context.cache` as long as they
// live.
std::vector<OpenedSource> open_sources(const std::vector<std::string>& arguments,
                                       OpenContext& context);

}  // namespace npyfs
