// The simulated system: hosts, switches and cables, put together as the configuration says. It only assembles.
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
  // `seed` is that of the cables' faults, of random replacement in the NICs' caches, and of the choice among several
  // ways; `waves` as for Engines.
  // `boundary` (it outlives the system): another process simulates what is not on this side of it.
  // `guests`: the hosts that are virtual machines, by number. `outside`: the hosts whose cables lead out of the
  // simulation; their NICs are connected to nothing, and each adapter has a frame port.
  System(sc_core::sc_module_name name, const Config& config, std::uint64_t seed = 1,
         const std::filesystem::path& waves = {}, Boundary* boundary = nullptr,
         const std::set<std::uint32_t>& guests = {}, const std::set<std::uint32_t>& outside = {});
  ~System() override;

  const Config& config() const { return *config_; }
  std::size_t hosts() const { return hosts_.size(); }
  Host& host(std::size_t index) { return *hosts_[index]; }
  // Of all hosts, as Topology::interfaces has them: while each host has one, by the host's number.
  std::size_t adapters() const { return adapters_.size(); }
  Adapter& adapter(std::size_t index) { return *adapters_[index]; }
  const Adapter& adapter(std::size_t index) const { return *adapters_[index]; }
  // With what its cable did to the frames that it sent.
  AdapterCounters counters(std::size_t index) const;
  // What strikes the frames that an adapter sends; nullptr: nothing.
  fabric::FaultInjector* faults(std::size_t index) { return faults_[index]; }
  // At the adapter's end of its cable; nullptr: no host is outside, or the adapter has no cable.
  fabric::FramePort* frame_port(std::size_t index) { return frame_ports_[index].get(); }
  bool is_outside(std::uint32_t host) const { return outside_.contains(host); }

  Engines& engines() { return *engines_; }
  Boundary* boundary() const { return boundary_; }
  // Of several processes, one does.
  bool writes_files() const;

  // Of all queue pairs, not completed.
  std::size_t sends_outstanding() const;

  std::size_t switches() const { return switches_.size(); }
  fabric::SwitchCounters switch_counters(std::size_t index) const;
  // By port, in the order of the switch's cables in the topology.
  std::vector<fabric::SwitchPortCounters> switch_port_counters(std::size_t index) const;
  // The same of histograms; empty: the switch makes none.
  std::vector<fabric::PortHistograms> switch_histograms(std::size_t index) const;
  fabric::Switch& switch_at(std::size_t index) { return *switches_[index]; }
  trace::Point<Frame>& pause_sent(std::size_t index);
  trace::Point<Frame>& marked(std::size_t index);
  // Switches that have paused one another for ever (model/fabric/pause_deadlock.h), as text; empty: there are none.
  // With several processes, each process looks at its own switches alone.
  const std::string& deadlock() const;
  // The pause storms that switches' watchdogs found, a sentence each (model/fabric/pause_watchdog.h).
  std::vector<std::string> pause_storms() const;

  // Runs until every kernel's device is ready, or somebody ends the simulation (sc_stop).
  void start();

 private:
  void make_hosts(std::uint64_t seed, const std::set<std::uint32_t>& guests);
  // A cable's end, as topology's cables have them.
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
  std::vector<fabric::FaultInjector*> faults_;  // of the frames that each adapter sends; nullptr: none
};

}  // namespace rnicsim::sim
