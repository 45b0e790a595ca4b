// SPDX-License-Identifier: Apache-2.0
// Parameters of a simulated host: CPU times, the path to the device, and the kernel's resources.
#pragma once

#include <cstdint>
#include <iterator>

#include "model/abi/attach.h"
#include "model/base/params.h"

namespace rnicsim::host {

using namespace rnicsim::literals;

struct CpuParams {
  Duration clock_read = 25_ns;
  Duration system_call = 300_ns;
  Duration post_wqe = 20_ns;
  Duration ring_doorbell = 40_ns;
  Duration doorbell_lock = 10_ns;
  Duration doorbell_lock_contended = 250_ns;
  Duration doorbell_lock_waiting = 130_ns;
  Duration post_recv = 40_ns;
  Duration mmio_write = 30_ns;
  Duration mmio_read = 500_ns;
  Duration poll_cq = 20_ns;
  Duration poll_cqe = 30_ns;
  Duration inline_receive = 10_ns;
  Duration detect = 80_ns;
  Duration wakeup = 3_us;
  Duration command = 5_us;
  Duration register_page = 5_ns;

  void describe(ParamVisitor& visit) {
    // At most a second: a thread's clock must stay near the simulation's.
    constexpr Range range{0, 1e12};
    visit.param("clock_read", clock_read, "a read of the clock: clock_gettime, gettimeofday, rdtsc", range);
    visit.param("system_call", system_call, "a system call without expensive work", range);
    visit.param("post_wqe", post_wqe, "a send WQE built in its ring", range);
    visit.param("ring_doorbell", ring_doorbell,
                "the barrier that makes posted WQEs visible before the doorbell's store", range);
    visit.param("doorbell_lock", doorbell_lock, "the lock of a shared doorbell page, when it is free", range);
    visit.param("doorbell_lock_contended", doorbell_lock_contended,
                "the lock of a shared doorbell page after a wait, from the release of the lock", range);
    visit.param("doorbell_lock_waiting", doorbell_lock_waiting,
                "additional time for each further thread that waits for the lock before this thread", range);
    visit.param("post_recv", post_recv, "a receive WQE built and its doorbell record written", range);
    visit.param("mmio_write", mmio_write, "a store to the device, until the CPU continues", range);
    visit.param("mmio_read", mmio_read, "a load from the device, until the value arrives", range);
    visit.param("poll_cq", poll_cq, "one poll of a completion queue", range);
    visit.param("poll_cqe", poll_cqe, "one completion consumed", range);
    visit.param("inline_receive", inline_receive, "the payload of an inline receive copied to its place", range);
    visit.param("detect", detect, "memory written by the device until a spinning CPU sees it", range);
    visit.param("wakeup", wakeup, "an event until a blocked thread runs again", range);
    visit.param("command", command, "a verb that goes through the kernel, one way", range);
    visit.param("register_page", register_page, "the kernel, each page of a memory region that is registered",
                {0, 1e9});
  }

  Duration cost(abi::CpuCost which) const {
    static constexpr Duration CpuParams::*kOf[] = {&CpuParams::clock_read,
                                                   &CpuParams::system_call,
                                                   &CpuParams::post_wqe,
                                                   &CpuParams::post_recv,
                                                   &CpuParams::mmio_write,
                                                   &CpuParams::mmio_read,
                                                   &CpuParams::poll_cq,
                                                   &CpuParams::poll_cqe,
                                                   &CpuParams::detect,
                                                   &CpuParams::wakeup,
                                                   &CpuParams::command,
                                                   &CpuParams::ring_doorbell,
                                                   &CpuParams::doorbell_lock,
                                                   &CpuParams::doorbell_lock_contended,
                                                   &CpuParams::doorbell_lock_waiting,
                                                   &CpuParams::inline_receive};
    static_assert(std::size(kOf) == std::size_t(abi::CpuCost::count));
    return this->*kOf[std::size_t(which)];
  }
};

// Times of the kernel's connection manager.
struct CmParams {
  Duration send = 3_us;
  Duration receive = 8_us;
  Duration resolve_known = 4_us;
  Duration resolve_neighbour = 40_us;
  Duration neighbour_timeout{1'000'000'000'000};

  void describe(ParamVisitor& visit) {
    constexpr Range range{0, 1e12};
    visit.param("send", send, "a message of the connection manager, until its doorbell", range);
    visit.param(
        "receive", receive,
        "from the interrupt of a message until the kernel acts on the message: two work queues, one after the other",
        range);
    visit.param("resolve_known", resolve_known, "an address that the host knows, a route or a group resolved", range);
    visit.param("resolve_neighbour", resolve_neighbour,
                "an address that the host must resolve by the network (ARP, neighbour discovery)", range);
    visit.param(
        "neighbour_timeout", neighbour_timeout,
        "longest wait for a neighbour's answer, before an address handle or a queue pair's path fails with ETIMEDOUT",
        {0, 1e14});
  }
};

struct HostParams {
  static constexpr double kPageSizes[] = {0x1p12, 0x1p16, 0x1p21, 0x1p30};

  CpuParams cpu;
  CmParams cm;
  Duration mmio_write_latency = 170_ns;
  Duration mmio_line_interval{5'715};
  std::uint32_t mmio_write_buffers = 10;
  Duration poll_interval = 1_us;
  Duration iommu_walk = 120_ns;
  Duration page_fault = 20_us;
  Duration page_in = 500_ns;
  std::uint32_t completion_vectors = 4;
  std::uint32_t event_queue_entries = 4096;
  ByteCount icm_chunk = 64_KiB;
  ByteCount kernel_memory = 256_MiB;
  ByteCount page_size = 4_KiB;
  std::uint32_t huge_pages = 0;
  bool raw_packets = true;
  bool lid_paths = false;
  std::uint32_t vlan = 0;

  // The completion vectors, and one event queue for all other events.
  std::uint32_t event_queues() const { return 1 + completion_vectors; }

  void describe(ParamVisitor& visit) {
    visit.group("cpu", cpu);
    visit.group("cm", cm);
    visit.param("mmio_write_latency", mmio_write_latency, "a posted write from the CPU until it reaches the device",
                {0, 1e12});
    visit.param("mmio_line_interval", mmio_line_interval,
                "least time between two lines of 64 bytes (or parts) from the CPU to the device", {0, 1e12});
    visit.param("mmio_write_buffers", mmio_write_buffers,
                "lines between CPU and device before a store waits; stores of attached programs never wait", {4, 1024});
    visit.param("poll_interval", poll_interval,
                "longest wait of an agent of bench after an empty poll; programs do not wait", {1e3, 1e12});
    visit.param("iommu_walk", iommu_walk, "a page's translation in the IOMMU, on request of the device; E", {0, 1e12});
    visit.param("page_fault", page_fault,
                "a missing page, from the device's request until the answer leaves: the IOMMU's interrupt, the "
                "kernel's thread, the page; E",
                {0, 1e12});
    visit.param("page_in", page_in, "each page made present by ibv_advise_mr; E, a minor fault", {0, 1e12});
    visit.param("completion_vectors", completion_vectors, "event queues, each with its MSI-X vector, for completions",
                {1, 62});
    visit.param("event_queue_entries", event_queue_entries, "entries of an event queue; made a power of two",
                {16, 1 << 20});
    visit.param("icm_chunk", icm_chunk, "memory lent to the device at a time for its contexts", {4096, 1 << 22});
    visit.param("kernel_memory", kernel_memory, "most memory that the kernel can lend to the device",
                {1 << 22, 0x1p36});
    visit.param("page_size", page_size, "pages in which the kernel registers memory: 4 KiB, 64 KiB, 2 MiB or 1 GiB",
                {.choices = kPageSizes});
    visit.param("huge_pages", huge_pages,
                "huge pages of 2 MiB that attached programs have (mmap with MAP_HUGETLB, shmget with SHM_HUGETLB)",
                {0, 1 << 20});
    visit.param("raw_packets", raw_packets, "programs may use raw packets, as with CAP_NET_RAW on Linux");
    visit.param("lid_paths", lid_paths,
                "ports have LIDs, and a path without a GRH leads to a LID: for programs that support only InfiniBand. "
                "No RoCE device has LIDs");
    visit.param("vlan", vlan,
                "the VLAN of the NICs' GIDs: RoCE packets have a tag (IEEE 802.1Q), with the service level as PCP; 0: "
                "no tag",
                {0, 4094});
  }
};

}  // namespace rnicsim::host
