// SPDX-License-Identifier: Apache-2.0

#include "formats/arrays/ragged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "formats/arrays/stored_array.h"
#include "formats/bytes/strict_reader.h"

namespace npyfs {

namespace {

// Offsets are held in memory whole: as much as one decoded chunk may take.
constexpr std::uint64_t kMostNbytes = kMostDecodedNbytes;
constexpr std::uint64_t kReadNbytes = std::uint64_t{1} << 20;

[[noreturn]] void refuse(const RaggedPair& pair, const std::string& what) {
  throw Error(ErrorKind::kUnsupported,
              fmt::format("{}{} beside {}: {}, so its records cannot be told apart",
                          printable(pair.name), kOffsetsEnd, printable(pair.name), what));
}

const DType& dtype_of(const StoredArray& stored) {
  const auto* npy = std::get_if<StoredNpy>(&stored.parts.front());
  return npy != nullptr ? npy->header.dtype
                        : std::get<std::shared_ptr<const ChunkGrid>>(stored.parts.front())->dtype();
}

const Shape& shape_of(const StoredArray& stored) {
  const auto* npy = std::get_if<StoredNpy>(&stored.parts.front());
  return npy != nullptr ? npy->header.shape
                        : std::get<std::shared_ptr<const ChunkGrid>>(stored.parts.front())->shape();
}

}  // namespace

const StoredArray* find_offsets(const Group& group, const std::string& name) {
  const auto named = [&](std::string_view wanted) {
    return std::find_if(group.arrays.begin(), group.arrays.end(),
                        [&](const StoredArray& array) { return array.name == wanted; });
  };
  const auto values = named(name);
  const auto offsets = named(name + std::string(kOffsetsEnd));
  if (values == group.arrays.end() || offsets == group.arrays.end()) {
    return nullptr;
  }
  const char kind = dtype_of(*offsets).kind;
  const bool fit =
      !shape_of(*values).empty() && shape_of(*offsets).size() == 1 && (kind == 'i' || kind == 'u');
  return fit ? &*offsets : nullptr;
}

std::shared_ptr<const RaggedPair> make_ragged_pair(const StoredArray& values,
                                                   const StoredArray& offsets,
                                                   const std::string& name,
                                                   const Verifier& verifier) {
  return std::make_shared<RaggedPair>(RaggedPair{
      make_stored_array(values, name, true),
      make_stored_array(offsets, name + std::string(kOffsetsEnd), true), name, verifier});
}

OffsetsPtr read_offsets(const RaggedPair& pair) {
  const std::uint64_t rows = pair.values->shape()[0];
  const std::uint64_t count = pair.offsets->shape()[0];
  if (!(pair.offsets->dtype() == DType::simple("<i8"))) {
    refuse(pair, fmt::format("it is {}, expected <i8", pair.offsets->dtype().text()));
  }
  if (count == 0 || pair.offsets->nbytes() > kMostNbytes) {
    refuse(pair, fmt::format("it has {} numbers, expected 1 to {}", count,
                             kMostNbytes / sizeof(std::int64_t)));
  }
  StrictReader reader(pair.verifier);
  const PlanRead plan_read = [&](ByteRange range, Plan& plan) { pair.offsets->plan(range, plan); };
  auto offsets = std::make_shared<std::vector<std::int64_t>>();
  std::int64_t before = 0;
  // Reads in pieces, so that an invalid array is not read to its end.
  while (offsets->size() < count) {
    const std::uint64_t first = offsets->size();
    const std::uint64_t end = std::min(count, first + kReadNbytes / sizeof(std::int64_t));
    offsets->resize(end);
    const std::span<std::int64_t> numbers = std::span(*offsets).subspan(first);
    reader.read(plan_read, first * sizeof(std::int64_t), std::as_writable_bytes(numbers));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::int64_t number = numbers[i];
      const bool fits = first + i == 0 ? number == 0 : number >= before;
      if (!fits || static_cast<std::uint64_t>(number) > rows) {
        refuse(pair, fmt::format("number {} is {}, expected 0 at first, none below the one before "
                                 "and none above the {} rows",
                                 first + i, number, rows));
      }
      before = number;
    }
  }
  if (static_cast<std::uint64_t>(before) != rows) {
    refuse(pair, fmt::format("its last number is {}, expected the {} rows", before, rows));
  }
  return offsets;
}

ArrayPart offsets_part(const std::vector<std::int64_t>& offsets, const std::string& name) {
  const auto bytes = std::as_bytes(std::span(offsets));
  return make_mapped_grid(
      DType::simple("<i8"), {offsets.size()},
      std::make_shared<MemorySource>(name, std::vector(bytes.begin(), bytes.end())), 0);
}

}  // namespace npyfs
