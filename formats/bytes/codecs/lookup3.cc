// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/codecs/lookup3.h"

#include <array>
#include <bit>
#include <cstring>

namespace npyfs {

namespace {

constexpr std::size_t kBlockNbytes = 12;

using Words = std::array<std::uint32_t, 3>;

// x, y and z are the three words in turn.
void mix(Words& state) {
  constexpr int kTurns[] = {4, 6, 8, 16, 19, 4};
  for (std::size_t i = 0; i < 6; ++i) {
    std::uint32_t& x = state[i % 3];
    const std::uint32_t y = state[(i + 1) % 3];
    std::uint32_t& z = state[(i + 2) % 3];
    x -= z;
    x ^= std::rotl(z, kTurns[i]);
    z += y;
  }
}

void finish(Words& state) {
  constexpr int kTurns[] = {14, 11, 25, 16, 4, 14, 24};
  for (std::size_t i = 0; i < 7; ++i) {
    std::uint32_t& x = state[(i + 2) % 3];
    const std::uint32_t y = state[(i + 1) % 3];
    x = (x ^ y) - std::rotl(y, kTurns[i]);
  }
}

void add(Words& state, std::span<const std::byte> block) {
  Words words{};
  std::memcpy(words.data(), block.data(), block.size());
  for (std::size_t i = 0; i < 3; ++i) {
    state[i] += words[i];
  }
}

}  // namespace

std::uint32_t lookup3(std::span<const std::byte> bytes, std::uint32_t initial) {
  Words state;
  state.fill(0xdeadbeefU + static_cast<std::uint32_t>(bytes.size()) + initial);
  while (bytes.size() > kBlockNbytes) {
    add(state, bytes.first(kBlockNbytes));
    mix(state);
    bytes = bytes.subspan(kBlockNbytes);
  }
  if (bytes.empty()) {
    return state[2];
  }
  add(state, bytes);
  finish(state);
  return state[2];
}

}  // namespace npyfs
