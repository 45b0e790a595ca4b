// SPDX-License-Identifier: Apache-2.0
#include "model/nic/pcie/dma_params.h"

namespace rnicsim::nic {

void DmaParams::describe(ParamVisitor& visit) {
  link.describe(visit);
  visit.param("read_latency", read_latency, "PCIe read of 64 B, idle; docs/timing.md (measured 372-488 ns)", {0, 1e9});
  visit.param("read_internal", read_internal, "the device's own part of a read; docs/timing.md", {0, 1e9});
  visit.param("read_queueing", read_queueing,
              "factor of a read's wait behind writes in the host: wait = factor x load^3 / (1 - load), with the load "
              "of the link to the host; tuned to 800 ns at 88%, docs/timing.md",
              {0, 1e9});
  visit.param(
      "line_read", line_read,
      "least time between two reads of one line of 64 B in the host; reads of other lines do not wait; docs/timing.md",
      {0, 1e9});
  visit.param("write_latency", write_latency, "posted write until visible in memory; docs/timing.md", {0, 1e9});
  visit.param("write_issue", write_issue,
              "time that a write occupies the link in addition to its bytes; docs/timing.md", {0, 1e6});
  visit.param("read_tags", read_tags, "read requests in flight; docs/timing.md", {1, 1024});
  visit.param("read_bytes", read_bytes, "bytes of reads in flight; docs/timing.md", {64, 1 << 24});
  visit.param("posted_headers", posted_headers, "writes that the host takes before it gives credits back", {1, 4096});
  visit.param("posted_data", posted_data, "bytes of such writes; a credit is 16 B", {64, 1 << 20});
  visit.param("relaxed_ordering", relaxed_ordering,
              "reads of programs' memory, except reads of atomics, pass writes that wait for credits");
  visit.param(
      "ordered_write", ordered_write,
      "the host's cost of strict ordering: delay of a write that does not continue the previous write; docs/timing.md",
      {0, 1e9});
  visit.param("burst", burst, "most bytes of adjoining accesses made in one call to the host", {4096, 1 << 20});
  visit.refuse(read_bytes < link.max_read_request, "read_bytes", "is less than", "max_read_request");
  visit.refuse(posted_data < link.max_payload, "posted_data", "is less than", "max_payload");
}

void DmaCounters::describe(CounterVisitor& visit) const {
  visit.counter("reads", reads, "requests", "reads of host memory issued");
  visit.counter("read_bytes", read_bytes, "bytes", "bytes read from host memory");
  visit.counter("writes", writes, "requests", "writes to host memory issued");
  visit.counter("write_bytes", write_bytes, "bytes", "bytes written to host memory");
  visit.counter("errors", errors, "requests", "accesses that the host refused");
  visit.counter("read_timeouts", read_timeouts, "requests",
                "refused reads without an answer: memory of a process that had ended");
  visit.counter("to_host_tlps", to_host_tlps, "TLPs", "writes and read requests on the link");
  visit.counter("to_host_bytes", to_host_bytes, "bytes", "bytes of these TLPs, with headers and framing");
  visit.busy("to_host_busy", to_host_busy_ps, 1, "time that the link to the host was busy");
  visit.waited("to_host_wait", to_host_wait_ps, "time that accesses waited, sum of all accesses");
  visit.counter("to_device_tlps", to_device_tlps, "TLPs", "completions and the CPU's writes on the link");
  visit.counter("to_device_bytes", to_device_bytes, "bytes", "bytes of these TLPs, with headers and framing");
  visit.busy("to_device_busy", to_device_busy_ps, 1, "time that the link to the device was busy");
  visit.waited("to_device_wait", to_device_wait_ps, "time that read data waited for the link, sum of all reads");
  visit.counter("read_stalls", read_stalls, "requests",
                "reads that waited for tags or bytes, or behind a write that waited");
  visit.counter("write_stalls", write_stalls, "requests", "writes that waited for posted credits");
  visit.counter("overtakings", overtakings, "requests", "writes of relaxed ordering that passed waiting writes");
  visit.counter("read_time", read_time_ps, "ps", "time from issue to data, sum of all reads");
}

}  // namespace rnicsim::nic
