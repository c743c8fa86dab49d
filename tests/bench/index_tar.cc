// SPDX-License-Identifier: Apache-2.0
//
// What scripts/bench_tar measures: seconds to index a shard.
//
//   index_tar walk SHARD     npyfs's walk, with samples and fields
//   index_tar pread SHARD    a pread of 512 bytes for each header, and the size in it, nothing else

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "formats/archives/tar_index.h"

namespace {

std::uint64_t walk(const char* path) {
  npyfs::OpenContext context;
  npyfs::TarIndexer indexer(npyfs::TarGrouping::kWebDataset, context);
  indexer.add_shard(npyfs::FileSource::open(path, path));
  return indexer.finish().size();
}

std::uint64_t read_headers(const char* path) {
  const int fd = ::open(path, O_RDONLY);
  char header[512];
  std::uint64_t members = 0;
  for (off_t at = 0; ::pread(fd, header, sizeof header, at) == sizeof header && header[0] != 0;
       ++members) {
    const auto nbytes = std::strtoull(header + 124, nullptr, 8);
    at += static_cast<off_t>(512 + (nbytes + 511) / 512 * 512);
  }
  ::close(fd);
  return members;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: index_tar walk|pread SHARD\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t found =
      std::string_view(argv[1]) == "walk" ? walk(argv[2]) : read_headers(argv[2]);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%.6f\n", seconds.count());
  return found > 0 ? 0 : 1;
}
