// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the DMA unit.
#pragma once

#include <cstdint>

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/pcie/pcie_link.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct DmaParams {
  PcieLinkParams link;
  Duration read_latency = 400_ns;
  Duration read_internal = 60_ns;
  Duration line_read = 43_ns;
  Duration write_latency = 150_ns;
  Duration write_issue{};
  Duration read_queueing = 70_ns;
  std::uint32_t read_tags = 128;
  ByteCount read_bytes = 32_KiB;
  std::uint32_t posted_headers = 128;
  ByteCount posted_data = 16_KiB;
  bool relaxed_ordering = false;
  Duration ordered_write{};
  ByteCount burst = 64_KiB;

  void describe(ParamVisitor& visit);
};

struct DmaCounters {
  Counter reads = 0;
  Counter read_bytes = 0;
  Counter writes = 0;
  Counter write_bytes = 0;
  Counter errors = 0;
  Counter read_timeouts = 0;
  Counter to_host_tlps = 0;
  Counter to_host_bytes = 0;
  Counter to_host_busy_ps = 0;
  Counter to_host_wait_ps = 0;
  Counter to_device_tlps = 0;
  Counter to_device_bytes = 0;
  Counter to_device_busy_ps = 0;
  Counter to_device_wait_ps = 0;
  Counter read_stalls = 0;
  Counter write_stalls = 0;
  Counter overtakings = 0;
  Counter read_time_ps = 0;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic
