// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the PCIe endpoint.
#pragma once

#include <cstdint>

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

struct PcieEndpointParams {
  std::uint32_t core_clock_khz = 430'000;

  void describe(ParamVisitor& visit) {
    visit.param("core_clock_khz", core_clock_khz, "device clock that stamps completions; docs/timing.md: 430 MHz",
                {1, 1e7});
  }
};

struct PcieEndpointCounters {
  Counter mmio_writes = 0;
  Counter mmio_reads = 0;
  Counter mmio_refused = 0;
  Counter dma_reads = 0;
  Counter dma_writes = 0;
  Counter dma_aborts = 0;
  Counter dma_blocked = 0;
  Counter translations = 0;
  Counter page_requests = 0;
  Counter page_invalidations = 0;
  Counter interrupts = 0;
  Counter function_resets = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("mmio_writes", mmio_writes, "requests", "BAR0 writes");
    visit.counter("mmio_reads", mmio_reads, "requests", "BAR0 reads");
    visit.counter("mmio_refused", mmio_refused, "requests", "BAR0 requests to no register, or of a wrong size");
    visit.counter("dma_reads", dma_reads, "requests", "reads of host memory");
    visit.counter("dma_writes", dma_writes, "requests", "writes to host memory");
    visit.counter("dma_aborts", dma_aborts, "requests", "requests that the root complex aborted");
    visit.counter("dma_blocked", dma_blocked, "requests", "requests suppressed: bus mastering is off");
    visit.counter("translations", translations, "requests", "requests for a physical address (ATS)");
    visit.counter("page_requests", page_requests, "messages", "page requests to the host (PRI)");
    visit.counter("page_invalidations", page_invalidations, "messages", "translations that the host invalidated (ATS)");
    visit.counter("interrupts", interrupts, "messages", "MSI-X messages written");
    visit.counter("function_resets", function_resets, "resets", "function-level resets");
  }
};

}  // namespace rnicsim::nic
