// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/values.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "formats/bytes/endian.h"
#include "formats/bytes/text_view.h"
#include "formats/kaldi/compressed.h"

namespace npyfs {

namespace {

template <typename From, typename To>
void convert(std::span<const std::byte> in, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size() / sizeof(To); ++i) {
    const To value = static_cast<To>(load_le<From>(in.data() + i * sizeof(From)));
    std::memcpy(out.data() + i * sizeof(To), &value, sizeof value);
  }
}

template <typename T>
void decode_sparse(const Object& object, std::span<const std::byte> stored,
                   std::span<std::byte> out, const MakeFault& fault) {
  std::memset(out.data(), 0, out.size());
  const std::byte* at = stored.data() + 2 + 3 + 5;  // "\0BSM " and the row count
  const std::byte* const end = stored.data() + stored.size();
  for (std::uint32_t row = 0; row < object.rows; ++row) {
    if (end - at < 13) {
      throw fault("the sparse matrix is not what it was when it was opened");
    }
    const auto count = load_le<std::int32_t>(at + 3 + 5 + 1);
    at += 3 + 5 + 5;
    for (std::int32_t i = 0; i < count; ++i) {
      const bool wide = end - at >= 14 && at[5] == std::byte{8};
      const auto index = end - at >= 10 ? load_le<std::uint32_t>(at + 1) : object.cols;
      if (index >= object.cols) {
        throw fault("the sparse matrix is not what it was when it was opened");
      }
      const T value =
          wide ? static_cast<T>(load_le<double>(at + 6)) : static_cast<T>(load_le<float>(at + 6));
      std::memcpy(out.data() + (std::uint64_t{row} * object.cols + index) * sizeof(T), &value,
                  sizeof value);
      at += wide ? 14 : 10;
    }
  }
}

// Every value of a matrix or vector, without regard to a range.
template <typename T>
void decode_full(const Object& object, std::span<const std::byte> stored, std::span<std::byte> out,
                 const MakeFault& fault) {
  if (object.text) {
    decode_text(object, as_text(stored), sizeof(T) == 8, out, fault);
    return;
  }
  const auto data = stored.subspan(object.header_nbytes);
  switch (object.kind) {
    case ObjectKind::kFloatMatrix:
    case ObjectKind::kFloatVector:
      convert<float, T>(data, out);
      return;
    case ObjectKind::kDoubleMatrix:
    case ObjectKind::kDoubleVector:
      convert<double, T>(data, out);
      return;
    case ObjectKind::kSparse:
      decode_sparse<T>(object, stored, out, fault);
      return;
    default: {
      std::vector<float> values(out.size() / sizeof(T));
      decode_compressed(object, stored, values);
      store_all<T>(values, out, fault);
    }
  }
}

// Numbers with their size bytes, in memory.
class SizedNumbers {
 public:
  SizedNumbers(std::string_view bytes, const MakeFault& fault) : bytes_(bytes), fault_(fault) {}

  std::uint32_t next() {
    if (bytes_.size() < 5 || bytes_[0] != 4) {
      throw fault_(bytes_.size() < 5 ? std::string("an element is cut off, expected 5 bytes")
                                     : fmt::format("the size byte of an element is {:#04x}, "
                                                   "expected 0x04",
                                                   static_cast<unsigned char>(bytes_[0])));
    }
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + 1, sizeof value);
    bytes_.remove_prefix(5);
    return value;
  }
  std::int32_t integer() { return static_cast<std::int32_t>(next()); }
  float number() {
    const std::uint32_t bits = next();
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  std::string_view bytes_;
  const MakeFault& fault_;
};

}  // namespace

void decode_numbers(const Object& object, std::span<const std::byte> stored, bool as_double,
                    std::span<std::byte> out, const MakeFault& fault) {
  if (as_double) {
    decode_full<double>(object, stored, out, fault);
  } else {
    decode_full<float>(object, stored, out, fault);
  }
}

ListValues parse_binary_lists(const Object& object, std::string_view stored,
                              const MakeFault& fault) {
  ListValues values;
  stored.remove_prefix(2);  // "\0B"
  if (object.kind == ObjectKind::kBool) {
    values.integers.push_back(stored[0] == 'T' ? 1 : 0);
    return values;
  }
  if (object.kind == ObjectKind::kDouble) {
    values.numbers.push_back(load_le<double>(std::as_bytes(std::span(stored)).data() + 1));
    return values;
  }
  SizedNumbers numbers(stored, fault);
  if (object.kind == ObjectKind::kInt32) {
    values.integers.push_back(numbers.integer());
    return values;
  }
  if (object.kind == ObjectKind::kFloat) {
    values.numbers.push_back(numbers.number());
    return values;
  }
  const std::int32_t count = numbers.integer();
  for (std::int32_t i = 0; i < count; ++i) {
    if (object.kind == ObjectKind::kFloatPairs) {
      values.numbers.push_back(numbers.number());
      values.numbers.push_back(numbers.number());
      continue;
    }
    const bool nested =
        object.kind == ObjectKind::kInt32Vectors || object.kind == ObjectKind::kPosterior;
    const std::int32_t elements = nested                                   ? numbers.integer()
                                  : object.kind == ObjectKind::kInt32Pairs ? 2
                                                                           : 1;
    for (std::int32_t j = 0; j < elements; ++j) {
      values.integers.push_back(numbers.integer());
      if (object.kind == ObjectKind::kPosterior) {
        values.numbers.push_back(numbers.number());
      }
    }
    values.counts.push_back(elements);
  }
  return values;
}

}  // namespace npyfs
