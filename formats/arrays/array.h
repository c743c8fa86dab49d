// SPDX-License-Identifier: Apache-2.0
//
// An array as the user sees it: dtype, shape, and for each of its bytes where that byte comes from.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/dtype.h"
#include "formats/bytes/plan.h"

namespace npyfs {

// Immutable; any thread.
class Array {
 public:
  virtual ~Array() = default;

  const DType& dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  // Bytes of data.
  std::uint64_t nbytes() const { return nbytes_; }

  // Appends pieces that add up to `range` of the data, or to its beginning if the plan becomes
  // full.
  virtual void plan(ByteRange range, Plan& plan) const = 0;

  // How many rows along axis 0 from this one on (at least 1) lie in one shard: a file, or a row of
  // the chunks of a store. Only for arrays that have axes.
  virtual std::uint64_t shard_run(std::uint64_t row) const { return shape_[0] - row; }

  // Whether the bytes are in Fortran order. Only a whole .npy file can be.
  virtual bool fortran_order() const { return false; }

  // "mapped": bytes go from the source to the reply; "decoded": through the cache; "computed":
  // made from the index. For `npyfs info`.
  virtual std::string storage() const = 0;

 protected:
  // Throws kTooLarge where the size of the data exceeds 63 bits.
  Array(DType dtype, Shape shape);

 private:
  DType dtype_;
  Shape shape_;
  std::uint64_t nbytes_;
};

using ArrayPtr = std::shared_ptr<const Array>;

}  // namespace npyfs
