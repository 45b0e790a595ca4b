// SPDX-License-Identifier: Apache-2.0
// Outputs of a host's devices in a replay, as far as the recorded software waited for them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/recording/seen_outputs.h"

namespace rnicsim::sim::rerun {

class DeviceOutputs {
 public:
  // Called after each expected output.
  std::function<void()> on_expected;

  // Call before the simulation starts, for each output that a step waits for.
  void expect(const DeviceOutput& output) {
    counters_[{output.what, output.owner}][output.address].times[output.count];
  }
  // One more output of this kind happens now.
  void came(Awaited what, std::uint64_t owner, std::uint64_t address);
  // Time of the output; nullopt: it has not happened yet. The output must have been expected.
  std::optional<Duration> when(const DeviceOutput& output) const {
    return counters_.at({output.what, output.owner}).at(output.address).times.at(output.count);
  }

 private:
  struct Counter {
    std::uint64_t count = 0;
    std::map<std::uint64_t, std::optional<Duration>> times;  // by count; only expected outputs
  };
  std::map<std::pair<Awaited, std::uint64_t>, std::unordered_map<std::uint64_t, Counter>> counters_;
};

}  // namespace rnicsim::sim::rerun
