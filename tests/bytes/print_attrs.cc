// SPDX-License-Identifier: Apache-2.0
//
// JSON on stdin, attrs.npy on stdout, so that test_attrs.py can have real numpy load it.

#include <iostream>
#include <iterator>

#include "formats/bytes/error.h"
#include "formats/bytes/value.h"

int main() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  try {
    std::cout << npyfs::print_attrs_npy(std::get<npyfs::Dict>(npyfs::parse_json(text).v));
  } catch (const npyfs::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
