// SPDX-License-Identifier: Apache-2.0
// The simulated system: builds hosts, switches and cables as the configuration says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <systemc>
#include <vector>

namespace rnicsim {
class Frame;

namespace fabric {
class FaultInjector;
class FaultRules;
class FramePort;
class Link;
class PauseDeadlock;
class Switch;
struct PortHistograms;
struct SwitchCounters;
struct SwitchPortCounters;
}  // namespace fabric

namespace trace {
template <class Event>
class Point;
}
}  // namespace rnicsim

namespace rnicsim::sim {

class Adapter;
class Boundary;
class Engines;
class Host;
class Outages;
struct AdapterCounters;
struct Config;

class System : public sc_core::sc_module {
 public:
  // `seed`: for the cables' faults, for random replacement in the NICs' caches, and for the choice among several paths.
  // `waves`: as for Engines. `boundary` (must outlive the system): another process simulates the part beyond it.
  // `guests`: numbers of the hosts that are virtual machines. `outside`: numbers of the hosts whose cables lead out of
  // the simulation; their NICs are not connected, and each of their adapters has a frame port.
  System(sc_core::sc_module_name name, const Config& config, std::uint64_t seed = 1,
         const std::filesystem::path& waves = {}, Boundary* boundary = nullptr,
         const std::set<std::uint32_t>& guests = {}, const std::set<std::uint32_t>& outside = {});
  ~System() override;

  const Config& config() const { return *config_; }
  std::size_t hosts() const { return hosts_.size(); }
  Host& host(std::size_t index) { return *hosts_[index]; }
  // Adapters of all hosts, in the order of Topology::interfaces: with one adapter in each host, index is the host's
  // number.
  std::size_t adapters() const { return adapters_.size(); }
  Adapter& adapter(std::size_t index) { return *adapters_[index]; }
  const Adapter& adapter(std::size_t index) const { return *adapters_[index]; }
  // Counters of an adapter, including those of its cable for the frames that the adapter sends.
  AdapterCounters counters(std::size_t index) const;
  // Faults of the frames that an adapter sends; nullptr: none.
  fabric::FaultInjector* faults(std::size_t index) { return faults_[index]; }
  // Frame port at the adapter's end of its cable; nullptr: no host is outside, or the adapter has no cable.
  fabric::FramePort* frame_port(std::size_t index) { return frame_ports_[index].get(); }
  bool is_outside(std::uint32_t host) const { return outside_.contains(host); }

  Engines& engines() { return *engines_; }
  Boundary* boundary() const { return boundary_; }
  // True in exactly one of the processes of a simulation.
  bool writes_files() const;

  // Send WRs of all queue pairs that are not completed.
  std::size_t sends_outstanding() const;

  std::size_t switches() const { return switches_.size(); }
  fabric::SwitchCounters switch_counters(std::size_t index) const;
  // Counters by port, in the order of the switch's cables in the topology.
  std::vector<fabric::SwitchPortCounters> switch_port_counters(std::size_t index) const;
  // Histograms by port, in the same order; empty: the switch keeps none.
  std::vector<fabric::PortHistograms> switch_histograms(std::size_t index) const;
  fabric::Switch& switch_at(std::size_t index) { return *switches_[index]; }
  trace::Point<Frame>& pause_sent(std::size_t index);
  trace::Point<Frame>& marked(std::size_t index);
  // Description of switches that have paused one another for ever (model/fabric/pause_deadlock.h); empty: none. With
  // several processes, each process checks only its own switches.
  const std::string& deadlock() const;
  // Pause storms that the switches' watchdogs found, one sentence each (model/fabric/pause_watchdog.h).
  std::vector<std::string> pause_storms() const;

  // Runs until every kernel's device is ready, or the simulation is stopped (sc_stop).
  void start();

 private:
  void make_hosts(std::uint64_t seed, const std::set<std::uint32_t>& guests);
  // One end of a cable, numbered as in Topology::cables.
  struct CableEnd {
    std::uint32_t cable;
    std::uint32_t end;
    std::uint32_t node;
  };
  void connect_adapter(const CableEnd& at);
  void connect_frame_port(const CableEnd& at);
  void connect_switch(const CableEnd& at, std::size_t port);
  void deliver(const CableEnd& at, auto receive);
  void make_switches(std::uint64_t seed);
  void connect_cables(std::uint64_t seed);
  void schedule_outages();
  void set_link(std::uint32_t adapter, bool up);
  std::vector<std::uint32_t> ends_of_cable(std::uint32_t adapter) const;
  std::string port_name(std::uint32_t box, std::uint32_t port) const;
  fabric::FaultRules fault_rules(std::uint64_t seed, std::uint32_t adapter) const;

  const std::unique_ptr<const Config> config_;
  Boundary* const boundary_;
  const std::set<std::uint32_t> outside_;
  const std::unique_ptr<Engines> engines_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Adapter*> adapters_;
  std::vector<std::unique_ptr<fabric::Switch>> switches_;
  const std::unique_ptr<fabric::PauseDeadlock> deadlock_;
  std::vector<std::unique_ptr<fabric::Link>> links_;
  const std::unique_ptr<Outages> outages_;
  std::vector<std::unique_ptr<fabric::FramePort>> frame_ports_;  // by adapter
  std::vector<fabric::FaultInjector*> faults_;  // by adapter: faults of the frames that it sends; nullptr: none
};

}  // namespace rnicsim::sim
