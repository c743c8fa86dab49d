// SPDX-License-Identifier: Apache-2.0
//
// Small files that npyfs writes itself: attributes, and what it says of the mount.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "fs/file.h"

namespace npyfs {

// Bytes in memory. Any thread.
class AttributesFile : public File {
 public:
  explicit AttributesFile(std::string bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t nbytes() const override { return bytes_.size(); }
  void plan_read(ByteRange range, Plan& plan) const override;

 private:
  std::string bytes_;
};

// Asks `say` at every opening. Any thread, as `say` must be.
class StatusFile : public File {
 public:
  explicit StatusFile(std::function<std::string()> say) : say_(std::move(say)) {}

  std::uint64_t nbytes() const override { return 0; }
  void plan_read(ByteRange /*range*/, Plan& /*plan*/) const override {}
  std::optional<std::string> text_now() const override { return say_(); }

 private:
  std::function<std::string()> say_;
};

}  // namespace npyfs
