// SPDX-License-Identifier: Apache-2.0
#include "sim/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "model/base/frame.h"
#include "model/fabric/fault_injector.h"
#include "model/fabric/frame_port.h"
#include "model/fabric/link.h"
#include "model/fabric/pause_deadlock.h"
#include "model/fabric/stations.h"
#include "model/fabric/switch.h"
#include "model/host/gids.h"
#include "model/host/host_kernel.h"
#include "model/nic/nic.h"
#include "model/nic/personality/values.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/engine_choice.h"
#include "sim/frame_facts.h"
#include "sim/outages.h"
#include "sim/processes/boundary.h"
#include "sim/simulated_host.h"
#include "sim/switch_routes.h"

namespace rnicsim::sim {

System::System(sc_core::sc_module_name name, const Config& config, std::uint64_t seed,
               const std::filesystem::path& waves, Boundary* boundary, const std::set<std::uint32_t>& guests,
               const std::set<std::uint32_t>& outside)
    : sc_module(name),
      config_(std::make_unique<const Config>(config)),
      boundary_(boundary),
      outside_(outside),
      engines_(std::make_unique<Engines>(config.engine_shown(), waves)),
      deadlock_(std::make_unique<fabric::PauseDeadlock>([this](auto end) { return port_name(end.box, end.port); })),
      outages_(std::make_unique<Outages>("outages")),
      frame_ports_(config.topology.interfaces.size()),
      faults_(config.topology.interfaces.size()) {
  make_hosts(seed, guests);
  make_switches(seed);
  connect_cables(seed);
  schedule_outages();
}

System::~System() = default;

void System::make_hosts(std::uint64_t seed, const std::set<std::uint32_t>& guests) {
  const auto& interfaces = config_->topology.interfaces;
  const host::Neighbours fabric(interfaces);
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    const auto& interface = interfaces[i];
    if (interface.device == 0)
      hosts_.push_back(guests.contains(interface.host) || is_outside(interface.host)
                           ? std::make_unique<Host>(interface)
                           : std::make_unique<Host>(*config_, interface, fabric));
    adapters_.push_back(&hosts_[interface.host]->add(fmt::format("host{}", i).c_str(), *config_, i,
                                                     engines_->factory(label_of(interface), config_->engine_of(i))));
    adapters_.back()->nic().seed(seed);
  }
}

void System::make_switches(std::uint64_t seed) {
  const auto& topology = config_->topology;
  const SwitchRoutes routes(topology);
  const auto stations = std::make_shared<const fabric::Stations>(routes.stations());
  for (std::uint32_t i = 0; i < topology.switches.size(); ++i) {
    fabric::SwitchWiring wiring{.number = i, .stations = stations, .way_to = routes.way_to(i), .ways = routes.ways(i)};
    wiring.seed = seed;
    for (const auto cable : routes.cables(i)) {
      const auto port = config_->port_of(cable);
      const auto number = static_cast<std::uint16_t>(wiring.lines.size());
      if (routes.in_tree(i, number)) wiring.flooded.push_back(number);
      wiring.lines.push_back(port.timing());
    }
    switches_.push_back(
        std::make_unique<fabric::Switch>(fmt::format("switch{}", i).c_str(), config_->switch_of(i), std::move(wiring)));
    deadlock_->add(*switches_.back());
  }
}

// Name of a port for messages: "leaf0, from spine1".
std::string System::port_name(std::uint32_t box, std::uint32_t port) const {
  const auto& topology = config_->topology;
  const auto node = static_cast<std::uint32_t>(adapters_.size()) + box;
  for (const auto& [from, to] : topology.cables)
    if ((from == node || to == node) && port-- == 0)
      return fmt::format("{}, from {}", topology.switches[box], topology.node_name(from == node ? to : from));
  return topology.switches[box];
}

const std::string& System::deadlock() const { return deadlock_->found(); }

std::vector<std::string> System::pause_storms() const {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> texts;
  std::size_t more = 0;
  for (std::uint32_t box = 0; box < switches_.size(); ++box)
    for (const auto& storm : switches_[box]->watchdog().storms()) {
      if (texts.size() == kMost) {
        ++more;
        continue;
      }
      const auto end = storm.restored == Duration{} ? "not over" : "over at " + to_string(storm.restored);
      texts.push_back(fmt::format(
          "PFC storm at {}, priority {}: paused without a departing frame since {}; found at {}, {}",
          port_name(box, storm.port), storm.priority, to_string(storm.since), to_string(storm.detected), end));
    }
  if (more != 0) texts.push_back(fmt::format("{} more PFC storms", more));
  return texts;
}

void System::connect_cables(std::uint64_t seed) {
  const auto& topology = config_->topology;
  std::vector<bool> connected(adapters_.size());
  std::vector<std::size_t> ports(switches_.size());
  for (std::uint32_t cable = 0; cable < topology.cables.size(); ++cable) {
    const auto [from, to] = topology.cables[cable];
    const auto rules = [&](std::uint32_t node) {
      return topology.is_switch(node) ? fabric::FaultRules() : fault_rules(seed, node);
    };
    links_.push_back(std::make_unique<fabric::Link>(fmt::format("link{}", cable).c_str(), config_->link_of(cable),
                                                    std::array{rules(from), rules(to)}, !outside_.empty()));
    if (topology.is_switch(from) && topology.is_switch(to)) {
      const auto end_at = [&](std::uint32_t node) {
        const auto box = static_cast<std::uint32_t>(node - adapters_.size());
        return fabric::PauseDeadlock::End{box, static_cast<std::uint32_t>(ports[box])};
      };
      deadlock_->connect(end_at(from), end_at(to));
    }
    for (const CableEnd& at : {CableEnd{cable, 0, from}, CableEnd{cable, 1, to}}) {
      if (topology.is_switch(at.node)) {
        connect_switch(at, ports[at.node - adapters_.size()]++);
      } else {
        connect_adapter(at);
        connected[at.node] = true;
      }
    }
  }
  for (std::size_t i = 0; i < adapters_.size(); ++i)
    if (!connected[i]) adapters_[i]->nic().frame_out().bind([](Frame) {});
}

void System::connect_switch(const CableEnd& at, std::size_t port) {
  auto& box = *switches_[at.node - adapters_.size()];
  auto& link = *links_[at.cable];
  box.out(port).bind([&link, end = at.end](Frame&& frame) { link.send(end, std::move(frame)); });
  deliver(at, [&box, port](Frame&& frame, Duration delay) { box.receive(port, std::move(frame), delay); });
}

void System::connect_adapter(const CableEnd& at) {
  faults_[at.node] = links_[at.cable]->faults(at.end);
  if (!outside_.empty()) return connect_frame_port(at);
  nic::Nic& nic = adapters_[at.node]->nic();
  auto& link = *links_[at.cable];
  nic.frame_out().bind([&link, end = at.end](Frame&& frame) { link.send(end, std::move(frame)); });
  deliver(at, [&nic](Frame&& frame, Duration delay) { nic.receive(std::move(frame), delay); });
}

// The frame port sends beside the NIC; for a host outside the simulation the port replaces the NIC. Frames of NIC and
// port may overlap on the cable: the port takes no transmission time from the NIC.
void System::connect_frame_port(const CableEnd& at) {
  nic::Nic& nic = adapters_[at.node]->nic();
  auto& link = *links_[at.cable];
  auto& port = *(frame_ports_[at.node] = std::make_unique<fabric::FramePort>(config_->port_of(at.cable).timing()));
  port.out.bind([&link, end = at.end](Frame&& frame) { link.send(end, std::move(frame)); });
  if (is_outside(adapters_[at.node]->interface().host)) {
    nic.frame_out().bind([](Frame&&) {});
    return deliver(at, [&port](Frame&& frame, Duration delay) { port.receive(std::move(frame), delay); });
  }
  nic.frame_out().bind([&link, end = at.end](Frame&& frame) { link.send(end, std::move(frame)); });
  deliver(at, [&nic, &port](Frame&& frame, Duration delay) {
    port.takes(frame) ? port.receive(std::move(frame), delay) : nic.receive(std::move(frame), delay);
  });
}

void System::deliver(const CableEnd& at, auto receive) {
  auto& out = links_[at.cable]->out(at.end);
  if (boundary_ == nullptr || !boundary_->cuts(at.cable)) return out.bind(std::move(receive));
  if (boundary_->is_here(at.node)) {
    boundary_->connect(at.cable, at.end, receive);
    return out.bind(std::move(receive));
  }
  out.bind([this, at](Frame&& frame, Duration delay) { boundary_->send(at.cable, at.end, frame, delay); });
}

// The adapter itself, and the adapter at the other end unless a switch is there.
std::vector<std::uint32_t> System::ends_of_cable(std::uint32_t adapter) const {
  const auto& topology = config_->topology;
  for (const auto& [from, to] : topology.cables)
    if ((from == adapter || to == adapter) && !topology.is_switch(from) && !topology.is_switch(to)) return {from, to};
  return {adapter};
}

void System::schedule_outages() {
  for (const auto& fault : config_->faults) {
    if (!fault.outage) continue;
    const auto& outage = *fault.outage;
    if (outage.kind == Outage::Kind::fatal) {
      auto& nic = adapters_[outage.interface]->nic();
      outages_->at(outage.at, [&nic] { nic.fail(nic::HealthSyndrome::injected); });
      continue;
    }
    for (const auto end : ends_of_cable(outage.interface)) {
      outages_->at(outage.at, [this, end] {
        outages_->begin(end);
        set_link(end, false);
      });
      if (!outage.lasts) continue;
      outages_->at(outage.at + *outage.lasts, [this, end] {
        if (outages_->end(end)) set_link(end, true);
      });
    }
  }
}

void System::set_link(std::uint32_t adapter, bool up) {
  adapters_[adapter]->nic().set_link(up);
  if (frame_ports_[adapter]) frame_ports_[adapter]->set_link(up);
}

fabric::FaultRules System::fault_rules(std::uint64_t seed, std::uint32_t adapter) const {
  std::vector<fabric::FaultRule> rules;
  for (const auto& fault : config_->faults) rules.push_back(fault.rule);
  return {rules, seed, adapter, frame_facts};
}

std::size_t System::sends_outstanding() const {
  std::size_t sends = 0;
  for (Adapter* adapter : adapters_) sends += adapter->nic().sends_outstanding();
  return sends;
}

AdapterCounters System::counters(std::size_t index) const {
  auto counters = adapters_[index]->counters();
  if (faults_[index]) counters.link = faults_[index]->counters();
  return counters;
}

bool System::writes_files() const { return boundary_ == nullptr || boundary_->rank() == 0; }

fabric::SwitchCounters System::switch_counters(std::size_t index) const { return switches_[index]->counters(); }

trace::Point<Frame>& System::pause_sent(std::size_t index) { return switches_[index]->pause_sent; }

trace::Point<Frame>& System::marked(std::size_t index) { return switches_[index]->marked; }

std::vector<fabric::SwitchPortCounters> System::switch_port_counters(std::size_t index) const {
  const auto& box = *switches_[index];
  std::vector<fabric::SwitchPortCounters> counters;
  for (std::size_t port = 0; port < box.ports(); ++port) counters.push_back(box.port_counters(port));
  return counters;
}

std::vector<fabric::PortHistograms> System::switch_histograms(std::size_t index) const {
  return switches_[index]->histograms();
}

void System::start() {
  const auto is_ready = [](const auto& host) { return host->is_guest() || host->kernel().ready(); };
  sc_core::sc_start(sc_core::SC_ZERO_TIME);  // elaborates the model: nothing is pending before
  while (!std::ranges::all_of(hosts_, is_ready)) {
    for (const auto& host : hosts_)
      if (!host->is_guest() && !host->kernel().failure().empty())
        throw std::runtime_error(fmt::format("{}: {}", host->name(), host->kernel().failure()));
    if (sc_core::sc_get_status() == sc_core::SC_STOPPED) return;
    if (!sc_core::sc_pending_activity()) throw std::runtime_error("the device of a host does not become ready");
    sc_core::sc_start(sc_core::sc_time_to_pending_activity());
  }
}

}  // namespace rnicsim::sim
