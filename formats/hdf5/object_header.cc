// SPDX-License-Identifier: Apache-2.0
//
// HDF5 File Format Specification 3.0, IV.A.1: object headers.

#include "formats/hdf5/object_header.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "formats/bytes/byte_range.h"
#include "formats/bytes/codecs/lookup3.h"
#include "formats/bytes/endian.h"

namespace npyfs {

namespace {

constexpr std::uint16_t kContinuationMessage = 0x10;
constexpr std::size_t kChecksumNbytes = 4;
constexpr std::size_t kMostBlocks = 4096;

bool begins_with(std::span<const std::byte> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()), signature.size()) ==
             signature;
}

// Where messages lie: the header itself, then what continuations point to.
struct Block {
  std::uint64_t address = 0;
  std::uint64_t nbytes = 0;
};

class HeaderReader {
 public:
  explicit HeaderReader(StructureReader& reader) : reader_(reader) {}

  std::vector<HeaderMessage> read(std::uint64_t address) {
    const auto head = reader_.read(address, 16);
    if (begins_with(head, "OHDR")) {
      read_version_2(address);
    } else {
      read_version_1(address, head);
    }
    return std::move(messages_);
  }

 private:
  void read_version_1(std::uint64_t address, std::span<const std::byte> head) {
    StructureParser fields(head, reader_, address);
    if (fields.take(1) != 1) {
      throw reader_.corrupt(address, "no object header begins there");
    }
    fields.skip(1 + 2 + 4);
    blocks_.push_back({address + 16, fields.take(4)});
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      require_few_blocks(address);
      const Block block = blocks_[i];
      const auto bytes = reader_.read(block.address, block.nbytes);
      take_messages(bytes, block.address, [](StructureParser& parser, HeaderMessage& message) {
        message.type = static_cast<std::uint16_t>(parser.take(2));
        const std::uint64_t nbytes = parser.take(2);
        message.flags = static_cast<std::uint8_t>(parser.take(1));
        parser.skip(3);
        return nbytes;
      });
    }
  }

  void read_version_2(std::uint64_t address) {
    constexpr std::uint8_t kTimes = 0x20;
    constexpr std::uint8_t kPhase = 0x10;
    constexpr std::uint8_t kOrder = 0x04;
    const auto head = reader_.read(address, 6);
    const auto flags = std::to_integer<std::uint8_t>(head[5]);
    const std::uint64_t head_nbytes =
        6 + ((flags & kTimes) != 0 ? 16 : 0) + ((flags & kPhase) != 0 ? 4 : 0);
    const std::size_t width = std::size_t{1} << (flags & 3);
    const auto size = reader_.read(address + head_nbytes, width);
    const std::uint64_t nbytes = StructureParser(size, reader_, address).take(width);
    const auto whole = checked_add(nbytes, head_nbytes + width + kChecksumNbytes);
    if (!whole) {
      throw reader_.corrupt(address, "the object header has no end");
    }
    const std::size_t order_nbytes = (flags & kOrder) != 0 ? 2 : 0;
    take_checked(address, *whole, head_nbytes + width, "OHDR", order_nbytes);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      require_few_blocks(address);
      const Block block = blocks_[i];
      take_checked(block.address, block.nbytes, 4, "OCHK", order_nbytes);
    }
  }

  void take_checked(std::uint64_t address, std::uint64_t nbytes, std::uint64_t head_nbytes,
                    std::string_view signature, std::size_t order_nbytes) {
    const auto bytes = reader_.read_checked(address, nbytes, signature);
    const auto messages = std::span(bytes).subspan(head_nbytes);
    take_messages(messages.first(messages.size() - kChecksumNbytes), address,
                  [&](StructureParser& parser, HeaderMessage& message) {
                    message.type = static_cast<std::uint16_t>(parser.take(1));
                    const std::uint64_t size = parser.take(2);
                    message.flags = static_cast<std::uint8_t>(parser.take(1));
                    parser.skip(order_nbytes);
                    return size;
                  });
  }

  // `take_head` gives the size of the body. What is left is too small for a message: a gap.
  template <typename TakeHead>
  void take_messages(std::span<const std::byte> bytes, std::uint64_t address, TakeHead take_head) {
    constexpr std::size_t kLeastHead = 4;
    StructureParser parser(bytes, reader_, address);
    while (parser.left() >= 2 * kLeastHead) {
      HeaderMessage message;
      const std::uint64_t nbytes = take_head(parser, message);
      const auto body = parser.take_bytes(nbytes);
      message.body.assign(body.begin(), body.end());
      if (message.type == kContinuationMessage) {
        StructureParser fields(message.body, reader_, address);
        const std::uint64_t at = fields.take_address();
        blocks_.push_back({at, fields.take_length()});
      } else if (message.type == kDataspaceMessage || message.type == kLayoutMessage) {
        messages_.push_back(std::move(message));
      }
    }
  }

  void require_few_blocks(std::uint64_t address) const {
    if (blocks_.size() > kMostBlocks) {
      throw reader_.corrupt(address, "the object header has no end");
    }
  }

  StructureReader& reader_;
  std::vector<Block> blocks_;
  std::vector<HeaderMessage> messages_;
};

}  // namespace

Error StructureReader::corrupt(std::uint64_t address, std::string_view text) const {
  return corrupt_at(source_.name(), base_ + address, text);
}

Error StructureReader::unsupported(std::string_view text) const {
  return file_error(ErrorKind::kUnsupported, source_.name(), text);
}

std::vector<std::byte> StructureReader::read(std::uint64_t address, std::uint64_t nbytes) {
  const auto at = checked_add(address, base_);
  if (!at || nbytes > left_) {
    throw corrupt(address, "the structures there go round in a circle");
  }
  source_.require_within(*at, nbytes);
  left_ -= nbytes;
  std::vector<std::byte> bytes(nbytes);
  source_.read_at(*at, bytes);
  return bytes;
}

std::vector<std::byte> StructureReader::read_checked(std::uint64_t address, std::uint64_t nbytes,
                                                     std::string_view signature) {
  if (nbytes < signature.size() + kChecksumNbytes) {
    throw corrupt(address, fmt::format("{} has {} bytes, expected more", signature, nbytes));
  }
  auto bytes = read(address, nbytes);
  const auto payload = std::span(bytes).first(bytes.size() - kChecksumNbytes);
  if (!begins_with(payload, signature)) {
    throw corrupt(address, fmt::format("no {} begins there", signature));
  }
  if (checksums_ == StructureChecksums::kRequired &&
      lookup3(payload, 0) != load_le<std::uint32_t>(payload.data() + payload.size())) {
    throw corrupt(address, fmt::format("the checksum of {} is not that of its bytes", signature));
  }
  return bytes;
}

std::span<const std::byte> StructureParser::take_bytes(std::size_t nbytes) {
  if (nbytes > left_.size()) {
    throw reader_.corrupt(address_, "the structure there ends too early");
  }
  const auto taken = left_.first(nbytes);
  left_ = left_.subspan(nbytes);
  return taken;
}

std::uint64_t StructureParser::take(std::size_t nbytes) {
  const auto bytes = take_bytes(nbytes);
  std::uint64_t number = 0;
  for (std::size_t i = nbytes; i-- > 0;) {
    number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return number;
}

std::uint64_t StructureParser::take_wide(std::size_t nbytes) {
  const std::uint64_t number = take(nbytes);
  const std::uint64_t ones = ~std::uint64_t{0} >> (64 - 8 * nbytes);
  return number == ones ? ~std::uint64_t{0} : number;
}

std::vector<HeaderMessage> read_object_header(StructureReader& reader, std::uint64_t address) {
  return HeaderReader(reader).read(address);
}

}  // namespace npyfs
