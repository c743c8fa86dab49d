// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

// Where a format keeps its checksums together, apart from the payloads, one read brings those of
// many records; the next request of the thread is probably for the next of them.
class StoredChecksums {
 public:
  // The sources of `checksums` live as long as they do.
  std::uint32_t read(const Checksums& checksums, const Checksum& checksum,
                     const ReadWindow& window) {
    const Extent& stored = checksum.stored;
    if (window.holds(stored)) {
      return load_le<std::uint32_t>(window.bytes.data() + (stored.offset - window.offset));
    }
    const std::uint64_t payload_end = checksum.payload.offset + checksum.payload.nbytes;
    const bool beside = stored.offset >= payload_end && stored.offset - payload_end < 16;
    if (beside) {
      std::byte bytes[4];
      stored.source->read_at(stored.offset, bytes);
      return load_le<std::uint32_t>(bytes);
    }
    if (serial_ != checksums.serial() || !near_.holds(stored)) {
      constexpr std::uint64_t kMostNbytes = std::uint64_t{16} << 10;
      const std::uint64_t left = stored.source->nbytes() - stored.offset;
      near_ = {};
      buffer_.resize(std::clamp(left, stored.nbytes, kMostNbytes));
      stored.source->read_at(stored.offset, buffer_);
      near_ = {stored.source, stored.offset, buffer_};
      serial_ = checksums.serial();
    }
    return load_le<std::uint32_t>(near_.bytes.data() + (stored.offset - near_.offset));
  }

 private:
  std::vector<std::byte> buffer_;
  ReadWindow near_;
  std::uint64_t serial_ = 0;  // of the checksums that near_ holds
};

Error error_of(const Checksums& checksums, std::uint64_t record, const Checksum& checksum,
               const std::string& finding) {
  return corrupt_at(checksum.payload.source->name(), checksum.payload.offset,
                    fmt::format("checksum of {} ({} bytes) {}; the record is damaged, restore the "
                                "file",
                                checksums.name_of(record), checksum.payload.nbytes, finding));
}

class StrictVerifier : public Verifier {
 public:
  bool verifies() const override { return true; }

 private:
  std::optional<Error> find_fault(const Guard& guard, const ReadWindow& window) const override {
    for (std::uint64_t i = 0; guard.checksums != nullptr && i < guard.count; ++i) {
      if (auto fault = find_mismatch(*guard.checksums, guard.first + i, window)) {
        return fault;
      }
    }
    return std::nullopt;
  }
};

class TrustingVerifier : public Verifier {
 public:
  bool verifies() const override { return false; }

 private:
  std::optional<Error> find_fault(const Guard& /*guard*/,
                                  const ReadWindow& /*window*/) const override {
    return std::nullopt;
  }
};

}  // namespace

void Verifier::require_intact(const Guard& guard, const ReadWindow& window) const {
  if (const auto fault = fault_of(guard, window)) {
    throw Error(*fault);
  }
}

const Verifier& strict_verifier() {
  static const StrictVerifier verifier;
  return verifier;
}

const Verifier& trusting_verifier() {
  static const TrustingVerifier verifier;
  return verifier;
}

std::optional<Error> find_mismatch(const Checksums& checksums, std::uint64_t record,
                                   const ReadWindow& window, const std::function<void()>& proceed) {
  const auto checksum = checksums.checksum(record);
  if (!checksum) {
    return std::nullopt;
  }
  const Extent& payload = checksum->payload;
  const std::uint32_t found =
      window.holds(payload)
          ? checksum_of(checksum->kind,
                        window.bytes.subspan(payload.offset - window.offset, payload.nbytes))
          : read_checksum_of(*checksum, proceed);
  thread_local StoredChecksums stored;
  const std::uint32_t expected = stored.read(checksums, *checksum, window);
  if (found == expected) {
    return std::nullopt;
  }
  // A source that has changed under us is not damage.
  payload.source->check_unchanged();
  return error_of(checksums, record, *checksum,
                  fmt::format("is {:#010x}, expected {:#010x}", found, expected));
}

Error mismatch_error(const Checksums& checksums, std::uint64_t record) {
  return error_of(checksums, record, *checksums.checksum(record), "is wrong");
}

}  // namespace npyfs
