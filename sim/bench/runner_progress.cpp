// SPDX-License-Identifier: Apache-2.0
// Flows that make no progress: their detection, and the state of agents and NICs in the report.
#include <fmt/format.h>

#include <algorithm>

#include "model/nic/nic.h"
#include "sim/adapter.h"
#include "sim/bench/runner.h"

namespace rnicsim::sim::bench {
namespace {

using namespace rnicsim::literals;

}  // namespace

void Runner::check_progress() {
  for (std::size_t i = 0; i < flows_.size(); ++i)
    if (still_waits(flows_[i]) && now() - flows_[i].progress > patience(i)) report_standstill(i);
}

bool Runner::still_waits(const FlowState& flow) const { return flow.posted != flow.completed && flow.senders != 0; }

// A measurement shorter than patience() may end before a flow without progress is detected.
void Runner::see_to_it_that_all_moved() {
  const auto unproven = [&](const FlowState& flow) { return flow.completed == 0 && still_waits(flow); };
  // Small steps at first: a flow that progresses soon must not wait for a long step.
  for (Duration step = 10_us; in_any_process(std::ranges::any_of(flows_, unproven)) && control_.failure().empty();
       step = std::min(2 * step, check_every_)) {
    run_until(now() + step);
    check_progress();
  }
}

// Longer than a regular wait for one completion: all retries, and all data that is ahead on the wire.
Duration Runner::patience(std::size_t number) const {
  const Flow& flow = workload_.flows[number];
  constexpr Duration kLeast = 20_ms;
  constexpr Duration kMost = 10_s;
  const auto shift = std::min(flow.timeout, 20u);
  const Duration timeout = flow.timeout == 0 ? 0_s : Duration{4'096'000} * (std::int64_t{1} << shift);
  double bytes = 0;
  for (const auto& agent : plan_.agents)
    if (counts_as_sender(agent)) {
      const Flow& other = workload_.flows[agent.flow];
      const auto outstanding =
          other.window_per == WindowPer::qp ? std::uint64_t(other.window) * agent.qps.size() : other.window;
      bytes += static_cast<double>(outstanding) * static_cast<double>(other.longest().bytes + 100);
    }
  const double wire_ps = 8e12 * bytes / static_cast<double>(slowest_.bits_per_second);
  const auto wire = Duration{static_cast<std::int64_t>(std::min(wire_ps, 1e17))};
  return std::min(std::max(kLeast, 2 * (flow.retry + 1) * timeout), kMost) + 4 * wire;
}

void Runner::report_standstill(std::size_t flow) {
  control_.note(fmt::format("flow[{}] makes no progress: no completion for {}, since {}\n{}", flow,
                            to_string(now() - flows_[flow].progress), to_string(flows_[flow].progress), state(flow)));
}

// State of the agents of a flow, or of all agents; and of the NICs of hosts with agents.
std::string Runner::state(std::optional<std::size_t> flow) const {
  std::string text;
  for (std::size_t i = 0; i < agents_.size(); ++i)
    if (agents_[i] && (!flow || plan_.agents[i].flow == *flow)) text += "  " + agents_[i]->describe() + '\n';
  std::vector<bool> busy(plan_.hosts);
  for (const auto& agent : plan_.agents) busy[agent.host] = true;
  for (std::size_t host = 0; host < system_.adapters(); ++host) {
    if (!busy.at(system_.adapter(host).interface().host)) continue;
    std::string state;
    system_.adapter(host).nic().describe_state(state);
    constexpr std::size_t kMost = 4096;
    if (state.size() > kMost) state = state.substr(0, state.rfind('\n', kMost) + 1) + "...\n";
    text += fmt::format("{}'s NIC:\n{}", system_.adapter(host).label(), state);
  }
  if (text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace rnicsim::sim::bench
