// SPDX-License-Identifier: Apache-2.0

#include "formats/bytes/paused_decoders.h"

namespace npyfs {

PausedDecoders::~PausedDecoders() {
  for (Slot& slot : slots_) {
    empty(slot);
  }
}

std::unique_ptr<PausedDecoder> PausedDecoders::take(std::uint64_t serial) {
  for (Slot& slot : slots_) {
    if (slot.serial != serial || slot.decoder == nullptr) {
      continue;
    }
    std::unique_ptr<PausedDecoder> decoder = empty(slot);
    if (decoder == nullptr || decoder->serial == serial) {
      return decoder;
    }
    // The slot was given to another in between: dropped, as if it had been the oldest.
  }
  return nullptr;
}

void PausedDecoders::put(std::unique_ptr<PausedDecoder> decoder, std::uint64_t most_nbytes) {
  Slot& slot = slot_for(decoder->serial);
  slot.serial = decoder->serial;
  nbytes_ += decoder->nbytes;
  if (const std::unique_ptr<PausedDecoder> before(slot.decoder.exchange(decoder.release()));
      before != nullptr) {
    nbytes_ -= before->nbytes;
  }
  slot.since = ++time_;
  while (nbytes_ > most_nbytes) {
    Slot* const last = oldest(slot);
    if (last == nullptr) {
      return;
    }
    empty(*last);
  }
}

std::unique_ptr<PausedDecoder> PausedDecoders::empty(Slot& slot) {
  slot.since = 0;
  std::unique_ptr<PausedDecoder> decoder(slot.decoder.exchange(nullptr));
  if (decoder != nullptr) {
    nbytes_ -= decoder->nbytes;
  }
  return decoder;
}

// That of the same chunks, else one that is empty, else the oldest.
PausedDecoders::Slot& PausedDecoders::slot_for(std::uint64_t serial) {
  Slot* best = &slots_.front();
  for (Slot& slot : slots_) {
    if (slot.serial == serial) {
      return slot;
    }
    best = slot.since < best->since ? &slot : best;
  }
  return *best;
}

PausedDecoders::Slot* PausedDecoders::oldest(const Slot& but) {
  Slot* found = nullptr;
  for (Slot& slot : slots_) {
    if (&slot != &but && slot.since > 0 && (found == nullptr || slot.since < found->since)) {
      found = &slot;
    }
  }
  return found;
}

}  // namespace npyfs
