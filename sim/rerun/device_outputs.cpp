// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/device_outputs.h"

#include "model/base/kernel.h"

namespace rnicsim::sim::rerun {

void DeviceOutputs::came(Awaited what, std::uint64_t owner, std::uint64_t address) {
  const auto counters = counters_.find({what, owner});
  if (counters == counters_.end()) return;
  const auto counter = counters->second.find(address);
  if (counter == counters->second.end()) return;
  const auto expected = counter->second.times.find(++counter->second.count);
  if (expected == counter->second.times.end()) return;
  expected->second = now();
  on_expected();
}

}  // namespace rnicsim::sim::rerun
