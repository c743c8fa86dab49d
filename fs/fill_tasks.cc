// SPDX-License-Identifier: Apache-2.0

#include "fs/fill_tasks.h"

#include <chrono>
#include <cstring>

#include "fs/forest.h"
#include "fs/npy_file.h"
#include "fs/tree.h"

namespace npyfs {

void read_as_mounted(const Fetcher& fetcher, const File& file, std::uint64_t offset,
                     std::span<std::byte> out) {
  thread_local Gathered gathered;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  file.check_unchanged(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  fetcher.read(
      {offset, offset + out.size()},
      [&](ByteRange range, Plan& plan) { file.plan_read(range, plan); }, gathered);
  std::byte* to = out.data();
  for (const iovec& part : gathered.parts()) {
    std::memcpy(to, part.iov_base, part.iov_len);
    to += part.iov_len;
  }
  gathered.clear();
}

template <typename AnyTree>
void for_each_array_file(const AnyTree& tree, const VisitArray& visit) {
  tree.for_each_fed([&](const FedFiles& fed) {
    const auto entry = fed.count == 1 ? tree.find(fed.first) : std::nullopt;
    if (entry && dynamic_cast<const NpyFile*>(entry->file()) != nullptr) {
      visit(fed.first, tree.path(fed.first), entry->file()->shared_from_this());
    }
  });
}

template void for_each_array_file(const Tree& tree, const VisitArray& visit);
template void for_each_array_file(const Forest& tree, const VisitArray& visit);

}  // namespace npyfs
