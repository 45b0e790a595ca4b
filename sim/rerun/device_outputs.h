// What the devices of a host do in a replay, as far as the recorded software waited for it.
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
  // Runs after an output came that was expected.
  std::function<void()> on_expected;

  // Before the simulation begins: some step waits for this output.
  void expect(const DeviceOutput& output) {
    counters_[{output.what, output.owner}][output.address].times[output.count];
  }
  // One more of those came, now.
  void came(Awaited what, std::uint64_t owner, std::uint64_t address);
  // When it came; nullopt: it did not yet.
  std::optional<Duration> when(const DeviceOutput& output) const {
    return counters_.at({output.what, output.owner}).at(output.address).times.at(output.count);
  }

 private:
  struct Counter {
    std::uint64_t count = 0;
    std::map<std::uint64_t, std::optional<Duration>> times;  // by count, of those expected
  };
  std::map<std::pair<Awaited, std::uint64_t>, std::unordered_map<std::uint64_t, Counter>> counters_;
};

}  // namespace rnicsim::sim::rerun
