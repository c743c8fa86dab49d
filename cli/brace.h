// SPDX-License-Identifier: Apache-2.0
//
// Brace lists as shells and WebDataset write them: shard-{000..123}.tar, {a,b}, {1..9..2}.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace npyfs {

// Every text that `pattern` stands for; the leftmost list changes slowest. "{}" and "{x}" are
// literal. Numbers are padded with zeroes to the width of the wider bound if either bound begins
// with one; they may count down, letters too. Throws kUsage where braces do not pair, or where the
// list would be unreasonably long.
std::vector<std::string> expand_braces(std::string_view pattern);

}  // namespace npyfs
