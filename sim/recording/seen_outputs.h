// SPDX-License-Identifier: Apache-2.0
// The last outputs of a host's devices that its software can have seen: the cause of the software's next step.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "model/base/units.h"
#include "sim/trace_file/format.h"

namespace rnicsim::sim {

struct DeviceOutput {
  Awaited what;
  std::uint64_t owner;    // memory: the process; else: the adapter
  std::uint64_t address;  // memory: the cache line; interrupt: the vector; else 0
  std::uint64_t count;    // number of outputs of this kind so far, this one included
  Duration at;
};

class SeenOutputs {
 public:
  // `detect`: time until a CPU sees memory that a device wrote.
  explicit SeenOutputs(Duration detect) : detect_(detect) {}

  void add(const DeviceOutput& output, Duration now) {
    outputs_.push_back(output);
    if (const auto last = last_seen(now); last != outputs_.begin()) outputs_.erase(outputs_.begin(), last);
  }
  // Takes the last output that the software can have seen; nullopt: none that was not taken before.
  std::optional<DeviceOutput> take(Duration now) {
    const auto last = last_seen(now);
    if (last == outputs_.end() || !is_seen(*last, now)) return std::nullopt;
    const DeviceOutput output = *last;
    outputs_.erase(outputs_.begin(), last + 1);
    return output;
  }

 private:
  bool is_seen(const DeviceOutput& output, Duration now) const {
    return output.at + (output.what == Awaited::memory ? detect_ : Duration{}) <= now;
  }

  // The last output that the software has seen; the first output if it has seen none.
  std::deque<DeviceOutput>::iterator last_seen(Duration now) {
    auto found = outputs_.begin();
    for (auto output = outputs_.begin(); output != outputs_.end(); ++output)
      if (is_seen(*output, now)) found = output;
    return found;
  }

  const Duration detect_;
  std::deque<DeviceOutput> outputs_;
};

}  // namespace rnicsim::sim
