// SPDX-License-Identifier: Apache-2.0
//
// A stretch of a source as a source of its own: a file inside another.

#pragma once

#include <string>
#include <utility>

#include "formats/bytes/byte_source.h"

namespace npyfs {

class PartSource : public ByteSource {
 public:
  // Throws kCorrupt where `base` does not have these bytes. `name` is what messages call them.
  PartSource(SourcePtr base, std::string name, std::uint64_t offset, std::uint64_t nbytes)
      : ByteSource(std::move(name), nbytes, base->mtime_ns()),
        base_(std::move(base)),
        offset_(offset) {
    base_->require_within(offset, nbytes);
  }

  Identity identity() const override { return base_->identity(); }
  std::string path() const override { return base_->path(); }
  ReadCost cost() const override { return base_->cost(); }
  void check_unchanged() const override { base_->check_unchanged(); }
  bool changed() const override { return base_->changed(); }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> out) const override {
    base_->read_at(offset_ + offset, out);
  }

  SourcePtr base_;
  std::uint64_t offset_;
};

}  // namespace npyfs
