// SPDX-License-Identifier: Apache-2.0
//
// Every fuzz target over its corpus and over mutations of it: nothing may crash or hang, and no
// exception may leave a target.

#include "tests/fuzz/fuzz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

FUZZ_TARGET(tar_index);
FUZZ_TARGET(unpack);

namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  void (*run)(std::span<const std::byte> bytes);
  std::vector<std::string> seeds;  // files and folders below tests/data
};

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {
      {"tar_index", fuzz_tar_index, {"tar/dialect", "tar/bad", "tar/wds/names.tar"}},
      {"unpack", fuzz_unpack, {"tar/comp", "tar/bad"}},
  };
  return all;
}

std::vector<std::byte> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void add_files(const fs::path& path, std::vector<fs::path>& files) {
  if (!fs::is_directory(path)) {
    if (fs::exists(path)) {
      files.push_back(path);
    }
    return;
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file() && entry.path().extension() != ".json") {
      files.push_back(entry.path());
    }
  }
}

std::vector<std::vector<std::byte>> inputs_of(const Target& target) {
  std::vector<fs::path> files;
  for (const std::string& seed : target.seeds) {
    add_files(fs::path(NPYFS_TEST_DATA) / seed, files);
  }
  add_files(fs::path(NPYFS_FUZZ_CORPUS) / target.name, files);
  std::sort(files.begin(), files.end());
  std::vector<std::vector<std::byte>> inputs;
  for (const fs::path& file : files) {
    inputs.push_back(read_bytes(file));
  }
  return inputs;
}

// A few changes of the kinds that break parsers: bits, whole bytes, numbers, cuts, repeats.
std::vector<std::byte> mutate(std::vector<std::byte> bytes, std::mt19937& random) {
  for (std::uint32_t change = random() % 4 + 1; change > 0 && !bytes.empty(); --change) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1U << (random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(random());
        break;
      case 2:
        for (std::size_t i = at; i < std::min(bytes.size(), at + 12); ++i) {
          bytes[i] = static_cast<std::byte>('0' + random() % 8);
        }
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4: {
        const std::size_t n = std::min<std::size_t>(bytes.size() - at, random() % 1024);
        const std::vector<std::byte> piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                           bytes.begin() + static_cast<std::ptrdiff_t>(at + n));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size()),
                     piece.begin(), piece.end());
        break;
      }
      default: {
        const std::size_t n = std::min<std::size_t>(bytes.size() - at, 512);
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), n, std::byte{0});
      }
    }
  }
  return bytes;
}

class Fuzz : public ::testing::TestWithParam<Target> {};

TEST_P(Fuzz, CorpusAndMutations) {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  const std::uint32_t seed = given != nullptr
                                 ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                                 : std::random_device()();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto inputs = inputs_of(GetParam());
  ASSERT_FALSE(inputs.empty());
  for (const auto& input : inputs) {
    EXPECT_NO_THROW(GetParam().run(input));
    for (int i = 0; i < 100; ++i) {
      ASSERT_NO_THROW(GetParam().run(mutate(input, random)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, ::testing::ValuesIn(targets()),
                         [](const ::testing::TestParamInfo<Target>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
