// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/arrivals.h"

#include <algorithm>

#include "model/nic/blocks.h"
#include "model/nic/contexts/gather_scatter.h"
#include "model/nic/nic.h"
#include "model/nic/queues/completion.h"
#include "sim/adapter.h"
#include "sim/config/config.h"

namespace rnicsim::sim::bench {

Arrivals::Arrivals(System& system, std::vector<FlowState>& flows) : flows_(flows), owners_(system.adapters()) {
  for (std::uint32_t host = 0; host < system.adapters(); ++host) {
    const nic::NicBlocks& nic = system.adapter(host).nic().blocks();
    nic.gather_scatter.taken.subscribe(
        [this, host](const nic::PayloadTaken& taken) { count(host, taken.qpn.value, taken.bytes); });
    // A message that its completion carries (inline receive) is not scattered to memory.
    nic.completion.written.subscribe([this, host](const nic::CqeWritten& written) {
      if (written.inline_data) count(host, written.cqe.qpn, written.cqe.byte_count);
      completed(host, written.cqe.qpn);
    });
  }
}

void Arrivals::add(std::uint32_t host, std::uint32_t qpn, std::uint32_t flow, std::uint32_t header) {
  auto& owners = owners_[host];
  if (owners.size() <= qpn) owners.resize(qpn + 1);
  owners[qpn] = {&flows_[flow], header, false};
}

void Arrivals::receives(std::uint32_t host, std::uint32_t qpn) { owners_[host][qpn].receives = true; }

void Arrivals::completed(std::uint32_t host, std::uint32_t qpn) {
  const auto& owners = owners_[host];
  if (qpn < owners.size() && owners[qpn].receives) owners[qpn].flow->backlog.add(now(), 1);
}

void Arrivals::count(std::uint32_t host, std::uint32_t qpn, std::uint32_t bytes) {
  const auto& owners = owners_[host];
  if (qpn >= owners.size() || owners[qpn].flow == nullptr) return;
  const auto& [flow, header, receives] = owners[qpn];
  if (auto* interval = flow->interval_of(now())) interval->bytes += bytes - std::min(bytes, header);
}

}  // namespace rnicsim::sim::bench
