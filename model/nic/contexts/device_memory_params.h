// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the device memory.
#pragma once

#include <cstdint>

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct DeviceMemoryParams {
  static constexpr std::uint64_t kMost = 2 << 20;
  static constexpr std::uint32_t kLine = 64;
  static constexpr std::uint32_t kPage = 4096;  // unit in which a host may allocate it

  ByteCount size = 256_KiB;
  Duration latency = 40_ns;
  Duration line_interval = 2_ns;

  void describe(ParamVisitor& visit);
};

struct DeviceMemoryCounters {
  Counter reads = 0;
  Counter read_bytes = 0;
  Counter writes = 0;
  Counter write_bytes = 0;
  Counter cpu_loads = 0;
  Counter cpu_stores = 0;
  Counter turns = 0;
  Counter busy_ps = 0;
  Counter wait_ps = 0;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic
