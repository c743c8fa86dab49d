// SPDX-License-Identifier: Apache-2.0
//
// Counting requests from many threads, and the two texts that tell of them.

#include "fs/stats.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "formats/bytes/value.h"

namespace npyfs {
namespace {

// "reads.mapped.bytes" of a text.
Value find_value(const Value& all, std::string_view path) {
  const std::string_view name = path.substr(0, path.find('.'));
  for (const DictEntry& entry : std::get<Dict>(all.v)) {
    if (entry.name == name) {
      return name.size() == path.size() ? entry.value
                                        : find_value(entry.value, path.substr(name.size() + 1));
    }
  }
  ADD_FAILURE() << path << " is missing";
  return {};
}

std::int64_t number(const Value& all, std::string_view path) {
  return std::get<std::int64_t>(find_value(all, path).v);
}

// Series of a text, each with its value.
std::map<std::string, std::string> series_of(const std::string& metrics) {
  std::map<std::string, std::string> series;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) {
      const std::size_t space = line.rfind(' ');
      EXPECT_TRUE(series.emplace(line.substr(0, space), line.substr(space + 1)).second)
          << line << " stands there twice";
    }
  }
  return series;
}

TEST(RequestStats, CountsWhatManyThreadsDo) {
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kEach = 20'000;
  RequestStats stats;
  std::atomic<std::uint64_t> begun{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ++begun;
      for (std::uint64_t i = 0; i < kEach; ++i) {
        RequestTimer timer(stats);
        if (i % 2 == 0) {
          timer.count(ReadWay::kMapped, 4096);
        } else {
          timer.count(RequestKind::kLookup);
        }
      }
      stats.count_error(ErrorKind::kCorrupt);
      stats.count_other_error();
    });
  }
  // Nothing ever goes back while others count.
  std::uint64_t before = 0;
  do {
    const std::uint64_t now = stats.totals().reads[0].count;
    EXPECT_GE(now, before);
    before = now;
  } while (begun < kThreads);
  for (std::thread& thread : threads) {
    thread.join();
  }
  const RequestTotals totals = stats.totals();
  const RequestTotals::Asked& mapped = totals.reads[static_cast<std::size_t>(ReadWay::kMapped)];
  EXPECT_EQ(mapped.count, kThreads * kEach / 2);
  EXPECT_EQ(mapped.nbytes, kThreads * kEach / 2 * 4096);
  EXPECT_EQ(mapped.latency.count(), kThreads * kEach / 2);
  EXPECT_EQ(totals.requests[static_cast<std::size_t>(RequestKind::kLookup)].count,
            kThreads * kEach / 2);
  EXPECT_EQ(totals.requests[static_cast<std::size_t>(RequestKind::kOpen)].count, 0U);
  EXPECT_EQ(totals.errors[static_cast<std::size_t>(ErrorKind::kCorrupt)], kThreads);
  EXPECT_EQ(totals.errors.back(), kThreads);
}

TEST(RequestStats, WhatIsNotCountedIsNotTimed) {
  RequestStats stats;
  { const RequestTimer ignored(stats); }
  for (const RequestTotals::Asked& way : stats.totals().reads) {
    EXPECT_EQ(way.count + way.latency.count(), 0U);
  }
}

MountFigures some_figures() {
  RequestStats stats;
  {
    RequestTimer timer(stats);
    timer.count(ReadWay::kDecoded, 1000);
  }
  stats.count(ReadWay::kKept, 24);
  stats.count_error(ErrorKind::kChanged);
  MountFigures figures;
  figures.version = "1.2";
  figures.mountpoint = "/m\\n t\"";
  figures.requests = stats.totals();
  figures.cache.hits = 7;
  figures.cache.ahead_wasted = 3;
  return figures;
}

TEST(Stats, Json) {
  MountFigures figures = some_figures();
  Value all = parse_json(stats_json(figures));
  EXPECT_EQ(std::get<std::string>(find_value(all, "mountpoint").v), figures.mountpoint);
  EXPECT_EQ(number(all, "reads.requests"), 2);
  EXPECT_EQ(number(all, "reads.bytes"), 1024);
  EXPECT_EQ(number(all, "reads.decoded.bytes"), 1000);
  EXPECT_EQ(number(all, "reads.decoded.seconds.count"), 1);
  EXPECT_EQ(number(all, "reads.kept.requests"), 1);
  EXPECT_EQ(number(all, "reads.mapped.requests"), 0);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(find_value(all, "reads.mapped.seconds.p50").v))
      << "nothing was that fast";
  EXPECT_EQ(number(all, "cache.hits"), 7);
  EXPECT_EQ(number(all, "read_ahead.wasted"), 3);
  EXPECT_EQ(number(all, "errors.changed"), 1);
  EXPECT_EQ(std::get<bool>(find_value(all, "native.possible").v), true);
  const auto has = [&](const std::string& name) {
    return stats_json(figures).find('"' + name + '"') != std::string::npos;
  };
  EXPECT_FALSE(has("blocks_written")) << "of what is not counted nothing is told";
  EXPECT_FALSE(has("why_not"));
  figures.kept = KeptFigures{.blocks_written = 5};
  figures.why_not_native = "-o no_passthrough";
  all = parse_json(stats_json(figures));
  EXPECT_EQ(number(all, "kept.blocks_written"), 5);
  EXPECT_EQ(std::get<bool>(find_value(all, "native.possible").v), false);
  EXPECT_EQ(std::get<std::string>(find_value(all, "native.why_not").v), "-o no_passthrough");
}

TEST(Stats, Metrics) {
  const auto series = series_of(stats_metrics(some_figures()));
  const std::string mount = R"(mountpoint="/m\\n t\"")";
  const auto value = [&](const std::string& name, const std::string& labels = "") {
    const auto found = series.find(name + "{" + mount + (labels.empty() ? "" : ",") + labels + "}");
    return found != series.end() ? found->second : "missing";
  };
  EXPECT_EQ(value("npyfs_build_info", R"(version="1.2")"), "1");
  EXPECT_EQ(value("npyfs_reads_total", R"(way="decoded")"), "1");
  EXPECT_EQ(value("npyfs_read_bytes_total", R"(way="kept")"), "24");
  EXPECT_EQ(value("npyfs_read_duration_seconds_count", R"(way="decoded")"), "1");
  EXPECT_EQ(value("npyfs_read_duration_seconds_bucket", R"(way="decoded",le="+Inf")"), "1");
  EXPECT_EQ(value("npyfs_read_duration_seconds_bucket", R"(way="decoded",le="2.048e-06")").size(),
            1U);
  EXPECT_EQ(value("npyfs_cache_hits_total"), "7");
  EXPECT_EQ(value("npyfs_errors_total", R"(kind="changed")"), "1");
  EXPECT_EQ(value("npyfs_native_possible"), "1");
}

}  // namespace
}  // namespace npyfs
