// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target over its corpus and over seeded mutations of it: what a build without
// libFuzzer can do. The target's file is linked with this one; the program is called fuzz_TARGET.

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// The words of the row of the table `corpora` that begins with `first`.
std::vector<std::string> row_of(std::string_view first) {
  std::ifstream table(std::string(NPYFS_TEST_DATA) + "/../fuzz/corpora");
  for (std::string line; std::getline(table, line);) {
    std::istringstream text(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    if (!words.empty() && words.front() == first) {
      return words;
    }
  }
  return {};
}

bool is_called(const fs::path& path, const std::string& pattern) {
  return fnmatch(pattern.c_str(), path.filename().c_str(), 0) == 0;
}

std::vector<std::string> read_corpus() {
  std::vector<std::string> corpus;
  const auto row = row_of(std::string_view(program_invocation_short_name).substr(5));
  const auto expected = row_of("-");
  for (std::size_t i = 2; i < row.size(); ++i) {
    fs::recursive_directory_iterator at(fs::path(NPYFS_TEST_DATA) / row[i]);
    for (; at != fs::recursive_directory_iterator(); ++at) {
      const fs::path& path = at->path();
      if (std::any_of(expected.begin(), expected.end(),
                      [&](const std::string& name) { return is_called(path, name); })) {
        at.disable_recursion_pending();
      } else if (at->is_regular_file() && is_called(path, row[1])) {
        std::ifstream file(path, std::ios::binary);
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
