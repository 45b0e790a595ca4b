// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMostNamed = 5;  // header differences named on one line

struct Origin {
  EventKind kind;
  const char* block;
  const char* decided_by;
  std::array<std::string_view, 7> prefixes;  // parameters that act on the block; unused entries are empty
};

// Rows in the order of EventKind.
constexpr Origin kOrigins[]{
    {EventKind::end, "", "", {}},
    {EventKind::command, "kernel agent", "calls of the program, and the kernel agent", {"host."}},
    {EventKind::device_command,
     "nic.command_unit",
     "commands of the kernel agent, and the command unit",
     {"nic.pcie", "nic.contexts", "host."}},
    {EventKind::doorbell, "nic.doorbell", "software: the program and its verbs library", {"host.", "nic.pcie"}},
    {EventKind::cq_arm, "nic.doorbell", "software: the program and its verbs library", {"host.", "nic.pcie"}},
    {EventKind::eq_doorbell, "nic.doorbell", "software: the kernel agent", {"host.", "nic.pcie"}},
    {EventKind::doorbell_refused, "nic.doorbell", "software: a doorbell that the device refuses", {"host."}},
    {EventKind::wqe_fetch,
     "nic.wqe_fetch",
     "the fetch of WQEs",
     {"nic.send_wqes", "nic.receive_wqes", "nic.contexts", "nic.pcie"}},
    {EventKind::wqe, "nic.engine", "the fetch of WQEs, and contexts", {"nic.pcie", "nic.contexts", "nic.send_wqes"}},
    {EventKind::packet_sent,
     "nic.engine",
     "the transport, and its turn at the transmit units",
     {"nic.units", "nic.transport", "nic.congestion", "nic.adaptive", "nic.pcie", "nic.contexts", "nic.send_wqes"}},
    {EventKind::packet_received, "nic.rx", "the receive pipeline", {"nic.rx", "nic.receive_buffer", "link."}},
    {EventKind::packet_dropped, "nic.rx", "the checks of received packets", {"nic.rx", "nic.receive_buffer"}},
    {EventKind::frame_sent, "nic.port", "the transmit pipeline and the port", {"nic.tx", "nic.port", "link."}},
    {EventKind::frame_received, "nic.port", "the network: cables and switches", {"link.", "switch.", "network."}},
    {EventKind::frame_fault, "fault injector", "a fault rule", {"link."}},
    {EventKind::cqe,
     "nic.completion",
     "the transport, and the write of completions",
     {"nic.pcie", "nic.contexts", "nic.units", "nic.transport"}},
    {EventKind::eqe, "nic.events", "the write of events", {"nic.pcie"}},
    {EventKind::eqe_lost, "nic.events", "a full event queue", {"host.event_queue_entries"}},
    {EventKind::interrupt, "root complex", "the device's MSI-X messages", {"nic.pcie", "host."}},
    {EventKind::event_taken, "kernel agent", "the host's handling of interrupts", {"host."}},
    {EventKind::qp_state,
     "nic.engine",
     "the states of queue pairs",
     {"nic.transport", "nic.units", "nic.contexts", "nic.pcie"}},
    {EventKind::dma_abort, "IOMMU", "an access that the IOMMU refuses", {"host."}},
    {EventKind::cm_sent, "connection manager", "the connection manager", {"host.cm"}},
    {EventKind::cm_received,
     "connection manager",
     "the peer's connection manager, and the network",
     {"host.cm", "link.", "switch."}},
    {EventKind::cm_state, "connection manager", "the connection manager", {"host.cm"}},
    {EventKind::refused, "nic", "the device's check of a request", {"nic.capabilities", "nic.contexts"}},
    {EventKind::mmio_write, "software", "software: a store to the device", {"host."}},
    {EventKind::mmio_read, "software", "software: a load from the device", {"host."}},
    {EventKind::config_write, "software", "software: a write to configuration space", {"host."}},
    {EventKind::config_read, "software", "software: a read of configuration space", {"host."}},
    {EventKind::memory, "software", "software: stores into memory that the device reads", {"host.", "nic.pcie"}},
    {EventKind::memory_pinned, "kernel agent", "software: registration of memory", {"host."}},
    {EventKind::memory_absent, "software", "software: unmapped memory", {"host."}},
    {EventKind::memory_on_demand, "kernel agent", "pages on demand", {"host."}},
    {EventKind::process, "kernel agent", "software: start and end of programs", {"host."}},
    {EventKind::awaited, "software", "the software's reads of its devices", {"host.", "nic.pcie"}},
    {EventKind::command_bytes, "software", "software: the arguments of a verb, or its answer", {"host.", "nic."}},
    {EventKind::posted, "software", "software: calls that post work requests", {"host."}},
    {EventKind::polled, "software", "software: calls that poll completion queues", {"host.", "nic.pcie"}},
    {EventKind::tlp, "nic.dma", "the PCIe link, and accesses to memory", {"nic.pcie", "nic.contexts", "host."}},
};
static_assert(std::size(kOrigins) == std::size_t(EventKind::count));

bool acts_on(const Origin* origin, const HeaderDifference& difference) {
  if (!origin || !difference.is_parameter) return true;
  return std::ranges::any_of(origin->prefixes, [&](std::string_view prefix) {
    return !prefix.empty() && difference.name.starts_with(prefix);
  });
}

void sort_in(Cause& cause, const std::vector<HeaderDifference>& differences, const Origin* origin) {
  for (const auto& each : differences)
    (!each.is_in_both ? cause.one_sided : acts_on(origin, each) ? cause.likely : cause.elsewhere).push_back(each);
}

std::string list_of(const std::vector<HeaderDifference>& differences) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostNamed, differences.size()); ++i)
    text += fmt::format("{}{}: {} | {}", i == 0 ? "" : "; ", differences[i].name, differences[i].a, differences[i].b);
  if (differences.size() > kMostNamed) text += fmt::format("; and {} more", differences.size() - kMostNamed);
  return text;
}

std::string step_of(const Divergence& first, std::span<const std::string> hosts) {
  if (!first.previous) return {};
  const auto& previous = *first.previous;
  const auto after = [&](const std::optional<Duration>& at) {
    return at ? signed_time(previous.at, *at) : std::string("none");
  };
  return fmt::format("after {} of {}: A {} | B {}", info(previous.kind).name, owner_text(previous, hosts),
                     after(first.a_at), after(first.b_at));
}

}  // namespace

Cause cause_of(const TraceDifference& difference, std::span<const std::string> hosts) {
  Cause cause;
  const Origin* origin = nullptr;
  if (difference.first && difference.first->origin) {
    const auto& event = *difference.first->origin;
    origin = &kOrigins[std::size_t(event.kind)];
    const auto host = event.host < hosts.size() ? hosts[event.host] : fmt::format("host {}", event.host);
    cause.block = fmt::format("{} of {}", origin->block, host);
    cause.decided_by = origin->decided_by;
    cause.step = step_of(*difference.first, hosts);
  }
  sort_in(cause, difference.headers, origin);
  return cause;
}

std::string verdict_of(const Cause& cause) {
  if (!cause.likely.empty()) return list_of(cause.likely);
  if (!cause.elsewhere.empty()) return "code, or a parameter that is not known to act on this block";
  return "no parameter, seed, command or version differs: the code of the model, of a library or of the program "
         "differs";
}

std::string to_text(const Cause& cause) {
  std::string text;
  if (!cause.block.empty()) text += fmt::format("  first in: {}: {}\n", cause.block, cause.decided_by);
  if (!cause.step.empty()) text += fmt::format("  step: {}\n", cause.step);
  text += fmt::format("  cause: {}\n", verdict_of(cause));
  if (!cause.elsewhere.empty()) text += fmt::format("  also differ: {}\n", list_of(cause.elsewhere));
  return text;
}

}  // namespace rnicsim::sim
