// SPDX-License-Identifier: Apache-2.0
//
// How long is waited for what, so that neither storage that stalls nor a crafted file holds up a
// reader for ever. Tests have their own times, and their own clock.

#pragma once

#include <chrono>
#include <functional>

namespace npyfs {

struct Patience {
  using Clock = std::chrono::steady_clock;

  // To open a file with all that it links to; further files and large ones take more.
  std::chrono::seconds open{300};
  // Until the child says something. It is ended after ten seconds of work without a word; waiting
  // for a disk may take longer. The system's clock measures this one.
  std::chrono::milliseconds silence{120'000};
  // For one block from the child: what never comes to an end need not be silent. 2 GiB of text on a
  // slow disk take less.
  std::chrono::seconds block{300};
  // For one block of a virtual array. A small crafted file can name a million chunks that decode to
  // 2 GiB each, and virtual arrays of virtual arrays; the slowest disk answers a million elements
  // within this.
  std::chrono::seconds virtual_block{120};

  // May be asked by any thread.
  std::function<Clock::time_point()> now = Clock::now;
};

}  // namespace npyfs
