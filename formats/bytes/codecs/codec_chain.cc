// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/codecs/codec_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace npyfs {

namespace {

// A size between two codecs: exact, or no more than a bound.
struct Size {
  std::uint64_t nbytes = 0;
  bool exact = true;
};

Size encoded_size(const Codec& codec, Size decoded) {
  if (const auto nbytes = codec.encoded_nbytes(decoded.nbytes)) {
    return {*nbytes, decoded.exact};
  }
  return {codec.most_encoded_nbytes(decoded.nbytes), false};
}

Error wrong_size(const std::string& what) {
  return {
      ErrorKind::kCorrupt,
      fmt::format("decoded size is {}; the chunk is damaged or its metadata is of another array",
                  what)};
}

// Of what was not decoded to its end.
Error too_large(Size expected) {
  return wrong_size(
      expected.exact ? fmt::format("more than the expected {} bytes", expected.nbytes)
                     : fmt::format("more than the {} bytes it may have at most", expected.nbytes));
}

void require_size(std::uint64_t found, Size expected) {
  if (expected.exact ? found != expected.nbytes : found > expected.nbytes) {
    throw wrong_size(
        fmt::format("{}, expected {}{}", found, expected.exact ? "" : "at most ", expected.nbytes));
  }
}

// Decodes into `out` as much as `expected` allows.
std::size_t decode_step(const Codec& codec, std::span<const std::byte> in, std::span<std::byte> out,
                        Size expected) {
  if (const auto claimed = codec.claimed_nbytes(in)) {
    require_size(*claimed, expected);
  }
  const auto made = codec.decode(in, out);
  if (!made) {
    throw too_large(expected);
  }
  require_size(*made, expected);
  return *made;
}

// Decodes what may be of any size up to `most_nbytes`, by trying.
Buffer decode_growing(const Codec& codec, std::span<const std::byte> in,
                      std::uint64_t most_nbytes) {
  constexpr std::uint64_t kFirstNbytes = std::uint64_t{64} << 10;
  const Size most{most_nbytes, false};
  if (const auto claimed = codec.claimed_nbytes(in)) {
    require_size(*claimed, most);
  }
  const std::uint64_t first = codec.claimed_nbytes(in).value_or(in.size() * 4);
  for (std::uint64_t room = std::max(kFirstNbytes, first);; room *= 4) {
    Buffer out(std::min(room, most_nbytes));
    if (const auto made = codec.decode(in, out.bytes())) {
      out.shorten(*made);
      return out;
    }
    if (room >= most_nbytes) {
      throw too_large(most);
    }
  }
}

}  // namespace

std::string CodecChain::text() const {
  std::string text;
  for (const CodecPtr& codec : codecs_) {
    text += (text.empty() ? "" : ", ") + codec->name();
  }
  return text;
}

void CodecChain::decode(std::span<const std::byte> stored, std::span<std::byte> out,
                        std::uint64_t skipped) const {
  // Those that were applied, with the size of what they encoded.
  std::vector<std::pair<const Codec*, Size>> steps;
  Size size{out.size(), true};
  // No codec makes of a chunk what is much larger: a long chain must not make room for it.
  constexpr std::uint64_t kSlackNbytes = std::uint64_t{1} << 20;
  std::uint64_t most = 4 * out.size() + kSlackNbytes;
  for (std::size_t i = 0; i < codecs_.size(); ++i) {
    if (i < 64 && (skipped >> i & 1) != 0) {
      continue;
    }
    steps.emplace_back(codecs_[i].get(), size);
    size = encoded_size(*codecs_[i], size);
    if (codecs_[i]->holds_more_than_cells()) {
      most = size.nbytes;
    }
    if (!size.exact) {
      size.nbytes = std::min(size.nbytes, most);
    }
  }
  if (steps.empty()) {
    require_size(stored.size(), size);
    std::memcpy(out.data(), stored.data(), out.size());
    return;
  }
  Buffer held;
  for (std::size_t i = steps.size(); i-- > 1;) {
    const auto& [codec, expected] = steps[i];
    if (expected.exact) {
      Buffer next(expected.nbytes);
      decode_step(*codec, stored, next.bytes(), expected);
      held = std::move(next);
    } else {
      held = decode_growing(*codec, stored, expected.nbytes);
    }
    stored = held.bytes();
  }
  decode_step(*steps[0].first, stored, out, steps[0].second);
}

Buffer CodecChain::decode_any(std::span<const std::byte> stored, std::uint64_t most_nbytes) const {
  Buffer held;
  for (std::size_t i = codecs_.size(); i-- > 0;) {
    held = decode_growing(*codecs_[i], stored, most_stored_nbytes(most_nbytes));
    stored = held.bytes();
  }
  if (codecs_.empty()) {
    require_size(stored.size(), {most_nbytes, false});
    held = Buffer(stored.size());
    std::copy(stored.begin(), stored.end(), held.bytes().begin());
  }
  return held;
}

void CodecChain::append(CodecChain more) {
  std::move(more.codecs_.begin(), more.codecs_.end(), std::back_inserter(codecs_));
}

std::uint64_t CodecChain::most_stored_nbytes(std::uint64_t decoded_nbytes) const {
  Size size{decoded_nbytes, true};
  for (const CodecPtr& codec : codecs_) {
    size = encoded_size(*codec, size);
  }
  return size.nbytes;
}

std::optional<std::uint64_t> CodecChain::stored_nbytes(std::uint64_t decoded_nbytes) const {
  std::optional<std::uint64_t> nbytes = decoded_nbytes;
  for (const CodecPtr& codec : codecs_) {
    nbytes = nbytes ? codec->encoded_nbytes(*nbytes) : std::nullopt;
  }
  return nbytes;
}

}  // namespace npyfs
