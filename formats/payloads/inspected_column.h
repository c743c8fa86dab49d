// SPDX-License-Identifier: Apache-2.0
//
// A column of payloads whose headers are looked at once, when it is made.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "formats/bytes/record_set.h"
#include "formats/damage_list.h"
#include "formats/payloads/payload.h"
#include "formats/payloads/payload_bytes.h"
#include "formats/record_table.h"

namespace npyfs {

// Keeps what all such columns must know of their records: which are damaged and which lack an item,
// that is the field or any byte of it. What the others hold is the subclass's.
class InspectedColumn : public Column {
 public:
  std::uint64_t size() const override { return bytes_->size(); }
  void inspect(std::uint64_t record, Item& item) const override;

 protected:
  explicit InspectedColumn(std::shared_ptr<const ByteColumn> bytes) : bytes_(std::move(bytes)) {}

  // Looks at every record; to be called once, by whoever makes the column. A header may be what a
  // flipped bit left of it, and would then be said of all records: the more that hangs on it, the
  // sooner the record's checksum is asked. Throws what look_at() throws but for kCorrupt, which is
  // the record's damage; where not field.named and every record is damaged so, kUnsupported: nobody
  // has said that the field is of this kind.
  void look_at_all(const PayloadField& field, std::size_t window_nbytes);

  // Parses the header of a payload with at least one byte. Throws kCorrupt where it is damaged,
  // kUnsupported where it is something else, so that the field is none of this kind.
  virtual void look_at(std::uint64_t record, PayloadBytes& payload) = 0;
  // Whether two undamaged records are items of one dtype and shape, and whether of one dtype and
  // one shape but for axis 0.
  virtual bool alike(std::uint64_t a, std::uint64_t b) const = 0;
  virtual bool one_array(std::uint64_t a, std::uint64_t b) const = 0;
  virtual void describe(std::uint64_t record, Item& item) const = 0;

  // For look_at(): the record is damaged though its header can be understood; `nbytes` is what its
  // item would have.
  void set_damaged(const Error& why, std::uint64_t nbytes);

  const ByteColumn& bytes() const { return *bytes_; }
  const Damage* damage(std::uint64_t record) const;
  // For look_at(): throws kCorrupt where a payload that decode() takes whole is too large for that,
  // or nearly all of it are holes.
  static void require_readable(const PayloadBytes& payload);
  // For decode(): what it reads of the record must be verified.
  void require_intact(std::uint64_t record, DecodeContext& context) const;
  // The record's bytes, verified: for decode().
  std::vector<std::byte> read_whole(std::uint64_t record, DecodeContext& context) const;
  // kCorrupt that names the record's place, for decode().
  Error fault(std::uint64_t record, const std::string& text) const;

 private:
  void look_at_one(std::uint64_t record, const PayloadField& field, RecordBytes& payload);
  bool is_surprise(std::uint64_t record, std::uint64_t nbytes);
  void add_damage(std::uint64_t record, const RecordTable& table, const Error& why,
                  std::optional<std::uint64_t> nbytes);
  // `fault` names the record.
  void add_mismatch(std::uint64_t record, const Error& fault);

  std::shared_ptr<const ByteColumn> bytes_;
  DamageList damage_;
  RecordSet absent_;
  std::optional<std::uint64_t> first_;
  std::optional<std::uint64_t> previous_;
  std::optional<Damage> set_;
  int intact_surprises_ = 0;
};

}  // namespace npyfs
