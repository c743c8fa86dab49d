// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target over its corpus and over seeded mutations of it: what a build without
// libFuzzer can do. The target's file is linked with this one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_corpus() {
  std::vector<std::string> corpus;
  for (const std::string folder : {NPYFS_FUZZ_CORPUS}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file() && entry.path().extension() != ".npy") {
        std::ifstream file(entry.path(), std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      }
    }
  }
  return corpus;
}

// 0: it ran. Anything else it may do is a crash, a hang or what a sanitizer says.
int run(const std::string& input) {
  return LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

void mutate(std::string& input, std::mt19937& random) {
  const std::size_t changes = 1 + random() % 4;
  for (std::size_t i = 0; i < changes && !input.empty(); ++i) {
    const std::size_t at = random() % input.size();
    switch (random() % 5) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
        break;
      case 2:
        input.resize(at);
        break;
      case 3:
        input.insert(at, input.substr(random() % input.size(), random() % 32));
        break;
      default:
        input.replace(at, std::min<std::size_t>(4, input.size() - at), "\xff\xff\xff\x7f");
    }
  }
}

TEST(Fuzz, TheCorpusRuns) {
  const auto corpus = read_corpus();
  ASSERT_FALSE(corpus.empty());
  for (const std::string& input : corpus) {
    EXPECT_EQ(run(input), 0);
  }
}

TEST(Fuzz, MutationsOfTheCorpusRun) {
  const char* given = std::getenv("NPYFS_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                                     : std::random_device()();
  SCOPED_TRACE("NPYFS_TEST_SEED=" + std::to_string(seed));
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  const auto corpus = read_corpus();
  ASSERT_FALSE(corpus.empty());
  for (int i = 0; i < 2000; ++i) {
    std::string input = corpus[random() % corpus.size()];
    mutate(input, random);
    EXPECT_EQ(run(input), 0);
  }
}

}  // namespace
