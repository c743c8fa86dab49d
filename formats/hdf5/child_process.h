// SPDX-License-Identifier: Apache-2.0
//
// npyfs's end of the socket to the child that runs libhdf5 for one file.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "formats/bytes/byte_source.h"
#include "formats/hdf5/patience.h"
#include "formats/hdf5/wire.h"

namespace npyfs {

// Any thread; one question at a time, as libhdf5 itself would have it: the lock is held while the
// child works. A child is started when it is first asked, and anew after it has died. This is the
// one place below fs/ with a lock (see formats/README.md).
class Hdf5Process {
 public:
  // Of the very file that the source has open, whatever its path leads to by now.
  explicit Hdf5Process(SourcePtr source, Patience patience = {});
  ~Hdf5Process();
  Hdf5Process(const Hdf5Process&) = delete;
  Hdf5Process& operator=(const Hdf5Process&) = delete;

  const SourcePtr& source() const { return source_; }

  using Clock = Patience::Clock;

  using TakeFrame = std::function<bool(const WireFrame& frame)>;
  // Sends `request` and hands every frame of the answer to `take` until that returns true. Throws
  // what `take` throws, kCorrupt where the child dies, and kIo where it is silent for too long, or
  // has not given all of the answer at `end`: storage may have stalled, so a later question can
  // succeed.
  void ask(WireFrameWriter& request, Clock::time_point end, const TakeFrame& take) const;
  // The same within `most`, for which waiting until others have their answers does not count.
  void ask(WireFrameWriter& request, Clock::duration most, const TakeFrame& take) const;

  // Of the box `start`, `count` of the data set `path` the bytes from `skip_nbytes` on, which are
  // to fill `out`. Throws kCorrupt where they do not, or cannot be read.
  void read(const std::string& path, ReadForm form, std::uint32_t characters, const Shape& start,
            const Shape& count, std::uint64_t skip_nbytes, std::span<std::byte> out) const;

  // Ends the child: nothing is going to be asked for some time, or the process is about to fork.
  void rest() const;

 private:
  class Child;

  // By whoever holds the lock.
  void ask_alone(WireFrameWriter& request, Clock::time_point end, const TakeFrame& take) const;

  SourcePtr source_;
  Patience patience_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Child> child_;  // guarded by mutex_
};

}  // namespace npyfs
