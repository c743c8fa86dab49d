// SPDX-License-Identifier: Apache-2.0

#include "fs/stats.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "formats/bytes/value.h"

namespace npyfs {

namespace {

constexpr double kNsPerSecond = 1e9;

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

// A number that stands for itself in both texts. A counter only grows.
struct Figure {
  enum class Kind { kCounter, kGauge };
  const char* group;
  const char* field;
  const char* metric;
  Kind kind;
  const char* help;
  std::uint64_t (*of)(const MountFigures&);
};

constexpr Figure::Kind kCounter = Figure::Kind::kCounter;
constexpr Figure::Kind kGauge = Figure::Kind::kGauge;

using Mount = const MountFigures&;

constexpr Figure kCacheFigures[] = {
    {"cache", "hits", "npyfs_cache_hits_total", kCounter,
     "Chunks that were asked for and were held decoded.", [](Mount m) { return m.cache.hits; }},
    {"cache", "waits", "npyfs_cache_waits_total", kCounter,
     "Chunks that were asked for while another thread decoded them.",
     [](Mount m) { return m.cache.waits; }},
    {"cache", "loads", "npyfs_cache_loads_total", kCounter,
     "Chunks that were decoded, for a reader or ahead of one.",
     [](Mount m) { return m.cache.loads; }},
    {"cache", "failures", "npyfs_cache_failures_total", kCounter,
     "Chunks that could not be decoded.", [](Mount m) { return m.cache.failures; }},
    {"cache", "decoded_bytes", "npyfs_cache_decoded_bytes_total", kCounter,
     "Bytes of the chunks that were decoded.", [](Mount m) { return m.cache.decoded_nbytes; }},
    {"cache", "evicted", "npyfs_cache_evicted_total", kCounter, "Chunks that made room for others.",
     [](Mount m) { return m.cache.evicted; }},
    {"cache", "held_bytes", "npyfs_cache_held_bytes", kGauge,
     "Bytes of memory that decoded chunks take now.", [](Mount m) { return m.cache.held_nbytes; }},
    {"cache", "capacity_bytes", "npyfs_cache_capacity_bytes", kGauge,
     "Bytes of memory that decoded chunks may take.",
     [](Mount m) { return m.cache.capacity_nbytes; }},
    {"read_ahead", "issued", "npyfs_read_ahead_issued_total", kCounter,
     "Chunks that were decoded ahead of a reader in order.",
     [](Mount m) { return m.cache.ahead_issued; }},
    {"read_ahead", "used", "npyfs_read_ahead_used_total", kCounter,
     "Chunks decoded ahead that a reader then asked for.",
     [](Mount m) { return m.cache.ahead_used; }},
    {"read_ahead", "wasted", "npyfs_read_ahead_wasted_total", kCounter,
     "Chunks decoded ahead that went before anybody asked for them.",
     [](Mount m) { return m.cache.ahead_wasted; }},
};

constexpr Figure kIndexFigures[] = {
    {"index", "hits", "npyfs_index_hits_total", kCounter,
     "Pages of the kept index that were used instead of reading the sources.",
     [](Mount m) { return m.index->hits; }},
    {"index", "misses", "npyfs_index_misses_total", kCounter,
     "Pages that the kept index did not have, or not of these sources.",
     [](Mount m) { return m.index->misses; }},
};

constexpr Figure kKeptFigures[] = {
    {"kept", "read_hits", "npyfs_kept_read_hits_total", kCounter,
     "Reads of kept arrays that were answered from the cache folder.",
     [](Mount m) { return m.kept->read_hits; }},
    {"kept", "read_misses", "npyfs_kept_read_misses_total", kCounter,
     "Reads of kept arrays of which the cache folder had not all bytes.",
     [](Mount m) { return m.kept->read_misses; }},
    {"kept", "read_bytes", "npyfs_kept_read_bytes_total", kCounter,
     "Bytes that were read from the cache folder.", [](Mount m) { return m.kept->read_nbytes; }},
    {"kept", "blocks_written", "npyfs_kept_blocks_written_total", kCounter,
     "Blocks of 2 MiB that were written to the cache folder.",
     [](Mount m) { return m.kept->blocks_written; }},
    {"kept", "blocks_dropped", "npyfs_kept_blocks_dropped_total", kCounter,
     "Blocks that were not written: the disk was slow or full, or they were never read whole.",
     [](Mount m) { return m.kept->blocks_dropped; }},
    {"kept", "blocks_checked", "npyfs_kept_blocks_checked_total", kCounter,
     "Blocks that were held against their checksums before they were believed.",
     [](Mount m) { return m.kept->blocks_checked; }},
    {"kept", "blocks_bad", "npyfs_kept_blocks_bad_total", kCounter,
     "Blocks that did not fit their checksums.", [](Mount m) { return m.kept->blocks_bad; }},
    {"kept", "arrays_completed", "npyfs_kept_arrays_completed_total", kCounter,
     "Arrays that this mount completed.", [](Mount m) { return m.kept->arrays_completed; }},
    {"kept", "evicted_bytes", "npyfs_kept_evicted_bytes_total", kCounter,
     "Bytes that this mount evicted from the cache folder.",
     [](Mount m) { return m.kept->evicted_nbytes; }},
    {"kept", "waiting_bytes", "npyfs_kept_waiting_bytes", kGauge,
     "Bytes that wait to be written to the cache folder.",
     [](Mount m) { return m.kept->waiting_nbytes; }},
};

// Both without their groups' names where a mount has no such group.
template <typename Visit>
void for_each_figure(const MountFigures& figures, const Visit& visit) {
  if (figures.index) {
    for (const Figure& figure : kIndexFigures) {
      visit(figure);
    }
  }
  for (const Figure& figure : kCacheFigures) {
    visit(figure);
  }
  if (figures.kept) {
    for (const Figure& figure : kKeptFigures) {
      visit(figure);
    }
  }
}

// JSON

constexpr std::array<std::pair<const char*, double>, 4> kPercentiles = {
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}}};

Value seconds_value(const Latency& latency) {
  const std::uint64_t count = latency.count();
  Dict times;
  times.push_back({"count", Value{count}});
  times.push_back({"sum", Value{seconds(latency.sum_ns)}});
  const auto add = [&](const char* name, std::uint64_t ns) {
    times.push_back({name, count == 0 ? Value{} : Value{seconds(ns)}});
  };
  for (const auto& [name, share] : kPercentiles) {
    add(name, latency.percentile_ns(share));
  }
  add("max", latency.longest_ns);
  return Value{std::move(times)};
}

Value asked_value(const RequestTotals::Asked& asked, bool has_bytes) {
  Dict about;
  about.push_back({"requests", Value{asked.count}});
  if (has_bytes) {
    about.push_back({"bytes", Value{asked.nbytes}});
  }
  about.push_back({"seconds", seconds_value(asked.latency)});
  return Value{std::move(about)};
}

Value reads_value(const RequestTotals& totals) {
  RequestTotals::Asked all;
  for (const RequestTotals::Asked& way : totals.reads) {
    all.count += way.count;
    all.nbytes += way.nbytes;
    all.latency.add(way.latency);
  }
  Value reads = asked_value(all, true);
  for (std::size_t i = 0; i < kReadWayNames.size(); ++i) {
    std::get<Dict>(reads.v).push_back({kReadWayNames[i], asked_value(totals.reads[i], true)});
  }
  return reads;
}

Value requests_value(const RequestTotals& totals) {
  Dict requests;
  for (std::size_t i = 0; i < kRequestNames.size(); ++i) {
    requests.push_back({kRequestNames[i], asked_value(totals.requests[i], false)});
  }
  return Value{std::move(requests)};
}

Value errors_value(const RequestTotals& totals) {
  Dict errors;
  for (std::size_t i = 0; i < kErrorKindNames.size(); ++i) {
    errors.push_back({kErrorKindNames[i], Value{totals.errors[i]}});
  }
  return Value{std::move(errors)};
}

Value native_value(const MountFigures& figures) {
  Dict native;
  native.push_back({"possible", Value{figures.why_not_native.empty()}});
  if (!figures.why_not_native.empty()) {
    native.push_back({"why_not", Value{figures.why_not_native}});
  }
  return Value{std::move(native)};
}

Value arrays_value(const std::vector<ArrayFigures>& arrays) {
  List list;
  for (const ArrayFigures& array : arrays) {
    Dict about;
    about.push_back({"path", Value{array.path}});
    about.push_back({"access", Value{array.access}});
    if (!array.why_not_native.empty()) {
      about.push_back({"why_not_native", Value{array.why_not_native}});
    }
    list.push_back(Value{std::move(about)});
  }
  return Value{std::move(list)};
}

// Prometheus

class Metrics {
 public:
  // `mountpoint` is a label of every series: files of several mounts are collected together.
  explicit Metrics(std::string_view mountpoint)
      : mount_label_(fmt::format("mountpoint=\"{}\"", escaped(mountpoint))) {}

  // What follows are its series.
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  template <typename Number>
  void add(Number value, std::string_view suffix = "", std::string_view labels = "") {
    text_ += fmt::format("{}{}{{{}{}{}}} {}\n", name_, suffix, mount_label_,
                         labels.empty() ? "" : ",", labels, value);
  }
  void add_latency(const Latency& latency, const std::string& label) {
    for (std::uint64_t ns = kFirstBoundNs; ns <= kLastBoundNs; ns *= 2) {
      add(latency.count_below(ns), "_bucket", fmt::format("{},le=\"{}\"", label, seconds(ns)));
    }
    add(latency.count(), "_bucket", label + ",le=\"+Inf\"");
    add(seconds(latency.sum_ns), "_sum", label);
    add(latency.count(), "_count", label);
  }
  std::string take() { return std::move(text_); }

  static std::string label(const char* name, std::string_view value) {
    return fmt::format("{}=\"{}\"", name, escaped(value));
  }

 private:
  // 2 microseconds to 4 seconds, doubled each time.
  static constexpr std::uint64_t kFirstBoundNs = std::uint64_t{1} << 11;
  static constexpr std::uint64_t kLastBoundNs = std::uint64_t{1} << 32;

  static std::string escaped(std::string_view value) {
    std::string out;
    for (const char c : value) {
      if (c == '\n') {
        out += "\\n";
        continue;
      }
      if (c == '"' || c == '\\') {
        out += '\\';
      }
      out += c;
    }
    return out;
  }

  const std::string mount_label_;
  std::string_view name_;
  std::string text_;
};

void add_reads(Metrics& metrics, const RequestTotals& totals) {
  const auto for_each_way = [&](const auto& use) {
    for (std::size_t i = 0; i < kReadWayNames.size(); ++i) {
      use(totals.reads[i], Metrics::label("way", kReadWayNames[i]));
    }
  };
  metrics.begin("npyfs_reads_total", "counter",
                "Reads that were answered, by where their bytes came from.");
  for_each_way([&](const auto& way, const auto& label) { metrics.add(way.count, "", label); });
  metrics.begin("npyfs_read_bytes_total", "counter", "Bytes that reads were answered with.");
  for_each_way([&](const auto& way, const auto& label) { metrics.add(way.nbytes, "", label); });
  metrics.begin("npyfs_read_duration_seconds", "histogram",
                "Time from when a read came until it was answered.");
  for_each_way(
      [&](const auto& way, const auto& label) { metrics.add_latency(way.latency, label); });
}

void add_requests(Metrics& metrics, const RequestTotals& totals) {
  const auto for_each_request = [&](const auto& use) {
    for (std::size_t i = 0; i < kRequestNames.size(); ++i) {
      use(totals.requests[i], Metrics::label("request", kRequestNames[i]));
    }
  };
  metrics.begin("npyfs_requests_total", "counter", "Requests other than reads, by kind.");
  for_each_request(
      [&](const auto& asked, const auto& label) { metrics.add(asked.count, "", label); });
  metrics.begin("npyfs_request_duration_seconds", "histogram",
                "Time from when a request other than a read came until it was answered.");
  for_each_request(
      [&](const auto& asked, const auto& label) { metrics.add_latency(asked.latency, label); });
}

}  // namespace

std::string stats_json(const MountFigures& figures) {
  Dict all;
  all.push_back({"version", Value{figures.version}});
  all.push_back({"mountpoint", Value{figures.mountpoint}});
  all.push_back({"start_time_seconds", Value{figures.started_s}});
  all.push_back({"uptime_seconds", Value{figures.uptime_s}});
  all.push_back({"opening_seconds", Value{figures.opening_s}});
  all.push_back({"reads", reads_value(figures.requests)});
  all.push_back({"requests", requests_value(figures.requests)});
  for_each_figure(figures, [&](const Figure& figure) {
    if (all.back().name != figure.group) {
      all.push_back({figure.group, Value{Dict()}});
    }
    std::get<Dict>(all.back().value.v).push_back({figure.field, Value{figure.of(figures)}});
  });
  all.push_back({"errors", errors_value(figures.requests)});
  all.push_back({"native", native_value(figures)});
  all.push_back({"arrays", arrays_value(figures.arrays)});
  all.push_back({"arrays_left_out", Value{figures.arrays_left_out}});
  return print_json(Value{std::move(all)});
}

std::string stats_metrics(const MountFigures& figures) {
  Metrics metrics(figures.mountpoint);
  metrics.begin("npyfs_build_info", "gauge", "The version of the program.");
  metrics.add(1, "", Metrics::label("version", figures.version));
  metrics.begin("npyfs_start_time_seconds", "gauge", "When the mount was made, since 1970.");
  metrics.add(figures.started_s);
  metrics.begin("npyfs_opening_seconds", "gauge", "How long it took to open the data set.");
  metrics.add(figures.opening_s);
  add_reads(metrics, figures.requests);
  add_requests(metrics, figures.requests);
  for_each_figure(figures, [&](const Figure& figure) {
    metrics.begin(figure.metric, figure.kind == kCounter ? "counter" : "gauge", figure.help);
    metrics.add(figure.of(figures));
  });
  metrics.begin("npyfs_errors_total", "counter", "Requests that were answered with an error.");
  for (std::size_t i = 0; i < kErrorKindNames.size(); ++i) {
    metrics.add(figures.requests.errors[i], "", Metrics::label("kind", kErrorKindNames[i]));
  }
  metrics.begin("npyfs_native_possible", "gauge", "1 if the kernel may read files by itself.");
  metrics.add(figures.why_not_native.empty() ? 1 : 0);
  return metrics.take();
}

}  // namespace npyfs
