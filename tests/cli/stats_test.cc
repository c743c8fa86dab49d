// SPDX-License-Identifier: Apache-2.0
//
// What npyfs stats prints of given figures.

#include "cli/stats.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/bytes/error.h"
#include "fs/stats.h"
#include "tests/cli/scratch_folder.h"

namespace npyfs {
namespace {

MountFigures some_figures() {
  MountFigures figures;
  figures.version = "1.2";
  figures.mountpoint = "/m";
  figures.started_s = 1e9;
  figures.uptime_s = 3725;
  LatencyCounter latency;
  for (int i = 0; i < 99; ++i) {
    latency.add(2000);
  }
  latency.add(31'000'000);
  RequestTotals::Asked& mapped = figures.requests.reads[0];
  mapped.count = 100;
  mapped.nbytes = 3 << 20;
  latency.add_to(mapped.latency);
  figures.requests.requests[static_cast<std::size_t>(RequestKind::kOpenNative)].count = 4;
  figures.cache.hits = 3;
  figures.cache.loads = 6;
  figures.cache.ahead_issued = 5;
  figures.cache.ahead_used = 2;
  figures.cache.capacity_nbytes = 4 << 20;
  figures.arrays = {{"a.npy", "native", ""}, {"b.npy", "mapped", "why"}, {"c.npy", "native", ""}};
  return figures;
}

Value value_of(const MountFigures& figures) { return parse_json(stats_json(figures)); }

TEST(StatsText, IsATable) {
  EXPECT_EQ(stats_text(value_of(some_figures()), nullptr),
            "/m: npyfs 1.2, mounted for 1 h 2 min\n"
            "\n"
            "reads   requests  bytes    p50     p99     longest\n"
            "mapped  100       3.0 MiB  2.0 us  2.0 us  31 ms\n"
            "all     100       3.0 MiB  2.0 us  2.0 us  31 ms\n"
            "\n"
            "opens       0 by npyfs, 4 by the kernel itself\n"
            "cache       75.0 % hits, 0 bytes decoded, 0 bytes of 4.0 MiB in use\n"
            "read-ahead  5 chunks, 2 used, 0 wasted\n"
            "arrays      2 native, 1 mapped\n"
            "native      possible\n"
            "errors      none\n");
}

TEST(StatsText, TellsWhatIsKeptAndWhatWentWrong) {
  MountFigures figures = some_figures();
  figures.kept = KeptFigures{.read_hits = 1, .read_misses = 3, .blocks_written = 7};
  figures.why_not_native = "no \n reason";
  figures.arrays_left_out = 9;
  figures.requests.errors[static_cast<std::size_t>(ErrorKind::kCorrupt)] = 2;
  figures.requests.errors.back() = 1;
  expect_says(stats_text(value_of(figures), nullptr),
              {"arrays      2 native, 1 mapped, and 9 more\n",
               "kept        25.0 % hits, 0 bytes read, 7 blocks written, 0 dropped, 0 bad\n",
               "native      not possible: no \\x0a reason\n",
               "errors      2 corrupt, 1 other; .npyfs/errors names them\n"});
}

TEST(StatsText, RatesAreOfTheTimeInBetween) {
  const MountFigures before = some_figures();
  MountFigures now = before;
  now.uptime_s += 2;
  now.requests.reads[0].count += 50;
  now.requests.reads[0].nbytes += 2 << 20;
  now.cache.decoded_nbytes += 1 << 10;
  now.requests.errors.front() = 6;
  const Value first = value_of(before);
  expect_says(stats_text(value_of(now), &first),
              {"requests/s  bytes/s", "150       5.0 MiB  25          1.0 MiB"});
  EXPECT_EQ(stats_line(value_of(now), first),
            "1.0 MiB/s read in 25/s, 512 bytes/s decoded, p99 2.0 us, 6 errors\n");
}

TEST(StatsText, OfAnotherVersion) {
  const std::string said = error_of(
      ErrorKind::kCorrupt, [] { stats_text(parse_json(R"({"uptime_seconds": 1})"), nullptr); });
  expect_says(said, {"reads.", "is missing, expected a number"});
}

}  // namespace
}  // namespace npyfs
