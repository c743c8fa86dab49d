// SPDX-License-Identifier: Apache-2.0

#include "formats/zarr/renamed_members.h"

#include <fmt/format.h>

#include "formats/bytes/error.h"

namespace npyfs {

void RenamedMembers::look_at(const std::function<void()>& require_own_name) {
  try {
    require_own_name();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) {
      throw;
    }
    faults_.add(error);
  }
}

void RenamedMembers::tell(const std::string& where,
                          const std::function<void(const std::string&)>& warn) const {
  faults_.for_each([&](const std::string& text, std::uint64_t count) {
    warn(fmt::format("{}; {} {} so, and what is missing for that seems never to have been written",
                     text, count == 1 ? "1 member" : fmt::format("{} members", count),
                     where + (count == 1 ? " is" : " are")));
  });
}

}  // namespace npyfs
