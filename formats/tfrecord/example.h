// SPDX-License-Identifier: Apache-2.0
//
// tf.train.Example and SequenceExample: where the values of a record's features lie in it, and what
// they decode to. tensorflow: tensorflow/core/example/{example,feature}.proto

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/byte_range.h"
#include "formats/tfrecord/wire.h"

namespace npyfs {

// The oneof of tf.train.Feature. The numbers are its field numbers.
enum class ValueKind : std::uint8_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3, kMixed = 4 };

// In how many pieces the values of a feature of one record may lie: every read of the record looks
// at all of them, and every one costs 16 bytes in the index. Data has hundreds.
constexpr std::uint64_t kMaxSlices = 65536;

// Bytes of one decoded value; 1 for kBytes.
std::uint64_t value_itemsize(ValueKind kind);

// The values of one feature, or of one feature list, in one record.
struct FeatureValue {
  // kMixed: the steps of a feature list differ in kind.
  ValueKind kind = ValueKind::kNone;
  // The slices are the decoded bytes themselves, in order. Otherwise they are FloatList, Int64List
  // or, in a feature list, FeatureList messages, to be read by decode_values.
  bool direct = false;
  std::vector<ByteRange> slices;  // in the source, at most kMaxSlices
  std::uint64_t values = 0;
  std::uint64_t decoded_nbytes = 0;
  std::uint64_t steps = 0;        // of a feature list
  std::uint64_t step_nbytes = 0;  // decoded, of its first step
  bool steps_differ = false;      // not all have step_nbytes

  void clear();
};

// Receives a record's features. Where a name is given twice the last one counts.
class FeatureSink {
 public:
  virtual ~FeatureSink() = default;
  // Both may be moved from.
  virtual void feature(std::string_view name, FeatureValue& value) = 0;
  virtual void feature_list(std::string_view name, FeatureValue& value) = 0;
};

// Whether field 2 of the message is read: an Example has none, to its readers it is unknown.
enum class MessageKind { kExample, kSequenceExample };

// Reads the message in `range`. Throws WireFault where protobuf would not parse it, one of kind
// kTooLarge where a feature has more than kMaxSlices; then some features may have been given
// already.
void parse_example(const WireBytes& bytes, ByteRange range, MessageKind kind, FeatureSink& sink);

// What the slice of a FeatureValue that is not direct is.
enum class SliceKind { kFloatList, kInt64List, kFeatureList };

// Appends the decoded values (little-endian, as numpy has them) to `out` from `position` on, which
// moves along. Throws WireFault where they would exceed `out`: the slice is not what was indexed.
void decode_values(const WireBytes& bytes, ByteRange slice, SliceKind kind,
                   std::span<std::byte> out, std::size_t& position);

}  // namespace npyfs
