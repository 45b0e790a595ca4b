// What the devices of a host did last that its software can have seen: the reason for what the software does next.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "model/base/units.h"
#include "sim/recording/format.h"

namespace rnicsim::sim {

struct DeviceOutput {
  Awaited what;
  std::uint64_t owner;    // memory: the process; else the adapter
  std::uint64_t address;  // memory: the line; an interrupt's vector; else 0
  std::uint64_t count;    // so many were there of this kind, with this one
  Duration at;
};

class SeenOutputs {
 public:
  // A CPU sees memory that a device wrote so long afterwards.
  explicit SeenOutputs(Duration detect) : detect_(detect) {}

  void add(const DeviceOutput& output, Duration now) {
    outputs_.push_back(output);
    outputs_.erase(outputs_.begin(), last_seen(now));
  }
  // The last output that the software can have seen; nullopt: it was taken already, or there is none.
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

  // The first, when none is.
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
