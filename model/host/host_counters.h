// SPDX-License-Identifier: Apache-2.0
// Counters of the host: root complex, IOMMU and kernel.
#pragma once

#include "model/base/stats.h"
#include "model/host/cm/counters.h"

namespace rnicsim::host {

struct RootComplexCounters {
  Counter mmio_writes = 0;
  Counter mmio_reads = 0;
  Counter interrupts = 0;
  Counter device_errors = 0;
  Counter translations = 0;
  Counter page_requests = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("mmio_writes", mmio_writes, "requests", "posted writes of the CPU that reached the device");
    visit.counter("mmio_reads", mmio_reads, "requests", "reads of the CPU that the device answered");
    visit.counter("interrupts", interrupts, "interrupts", "MSI-X messages from the device");
    visit.counter("translations", translations, "requests",
                  "requests of the device for translations of pages on demand (ATS)");
    visit.counter("page_requests", page_requests, "messages",
                  "requests of the device for missing pages on demand (PRI)");
    visit.counter("device_errors", device_errors, "requests", "MMIO or configuration requests that the device refused");
  }
};

struct IommuCounters {
  Counter reads = 0;
  Counter writes = 0;
  Counter read_bytes = 0;
  Counter write_bytes = 0;
  Counter faults = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("reads", reads, "requests", "DMA reads that the IOMMU let pass");
    visit.counter("writes", writes, "requests", "DMA writes that the IOMMU let pass");
    visit.counter("read_bytes", read_bytes, "bytes", "bytes of these DMA reads");
    visit.counter("write_bytes", write_bytes, "bytes", "bytes of these DMA writes");
    visit.counter("faults", faults, "requests",
                  "DMA accesses aborted: range not pinned, read-only, not mapped, or without a process");
  }
};

// Names and unit (pages) as in `rdma statistic show mr`.
struct PageFaultCounters {
  Counter page_faults = 0;
  Counter page_faults_failed = 0;
  Counter page_invalidations = 0;
  Counter page_prefetch = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("page_faults", page_faults, "pages", "pages made present because a device requested them");
    visit.counter("page_faults_failed", page_faults_failed, "pages",
                  "pages requested that the process does not have, or has without this access");
    visit.counter("page_invalidations", page_invalidations, "pages", "pages withdrawn from the devices");
    visit.counter("page_prefetch", page_prefetch, "pages", "pages of ranges named by ibv_advise_mr");
  }
};

struct KernelCounters {
  Counter commands = 0;
  Counter commands_refused = 0;
  Counter mmio_refused = 0;
  Counter pages_registered = 0;
  Counter events = 0;
  PageFaultCounters on_demand;
  CmCounters cm;

  void describe(CounterVisitor& visit) const {
    visit.counter("commands", commands, "commands", "commands of processes that the device executed");
    visit.counter("commands_refused", commands_refused, "commands", "commands of processes that the kernel refused");
    visit.counter("mmio_refused", mmio_refused, "requests", "writes of a process to a page that is not its own");
    visit.counter("pages_registered", pages_registered, "pages", "pages of memory regions entered in the MTT");
    visit.counter("events", events, "events", "entries taken from event queues");
    visit.group("on_demand", on_demand);
    visit.group("cm", cm);
  }
};

}  // namespace rnicsim::host
