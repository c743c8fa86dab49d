// SPDX-License-Identifier: Apache-2.0
//
// One entry per parser. Built by clang it is libFuzzer's LLVMFuzzerTestOneInput; scripts/fuzz.sh
// does that. Everywhere else fuzz_test runs it over its corpus and over seeded mutations of that.
//
//   FUZZ_TARGET(tar_index) { ... use `bytes` ... }
//
// in tests/fuzz/tar_index.cc, inputs to begin from in FUZZ_SEEDS of fuzz_test.cc, finds as files in
// tests/fuzz/corpus/tar_index/, named by what is wrong with them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#ifdef NPYFS_LIBFUZZER
#define FUZZ_TARGET(name)                                                             \
  static void fuzz_##name(std::span<const std::byte> bytes);                          \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    fuzz_##name(std::as_bytes(std::span(data, size)));                                \
    return 0;                                                                         \
  }                                                                                   \
  static void fuzz_##name(std::span<const std::byte> bytes)
#else
#define FUZZ_TARGET(name) void fuzz_##name(std::span<const std::byte> bytes)
#endif
