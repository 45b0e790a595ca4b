// SPDX-License-Identifier: Apache-2.0
// Runs a workload on a system: agents on their hosts, the measured interval, and an end even without progress.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/host/memory/sparse_memory.h"
#include "model/host/software_process.h"
#include "sim/bench/agents/agent.h"
#include "sim/bench/agents/arrivals.h"
#include "sim/bench/agents/station.h"
#include "sim/bench/flow_state.h"
#include "sim/bench/plan.h"
#include "sim/bench/results/measured.h"
#include "sim/snapshot_server.h"
#include "sim/system.h"
#include "sim/watch.h"

namespace rnicsim::sim::bench {

class Runner {
 public:
  // `workload` and `plan` outlive this object.
  Runner(System& system, const Workload& workload, const Plan& plan);
  ~Runner();

  // Returns an empty string, or the failure: an operation failed, or a flow made no progress. Throws no exception: the
  // sanitizers misjudge an exception that is thrown beside the agents' stacks.
  std::string execute(Watch* watch = nullptr);
  // Set if a signal or a limit ended the run.
  const std::optional<Watch::End>& ended() const { return ended_; }
  // Ends all agents and destroys their objects, in simulated time; for callers that use the system afterwards.
  void close();

  const std::vector<FlowState>& flows() const { return flows_; }
  std::uint64_t stock(std::size_t flow) const { return stocks_[flow]; }
  const Snapshot& before() const { return before_; }
  const Snapshot& after() const { return after_; }
  // State half-way through the interval; nullptr: the half was not known.
  const Snapshot* middle() const { return middle_ ? &*middle_ : nullptr; }
  // Share of the interval in which the agent was busy; nullopt: the agent has no thread, since it has no work.
  std::optional<double> busy_share(std::size_t agent) const;
  Duration interval() const { return after_.at - before_.at; }
  Duration warmup() const { return before_.at - begin_; }

 private:
  struct HostAgents {
    std::vector<std::uint32_t> agents;
    std::unique_ptr<host::SparseMemory> memory;
    Devices devices;
    std::unique_ptr<host::SoftwareProcess> process;
    std::uint32_t working = 0;  // running threads
  };

  void make_host(std::uint32_t host, std::vector<std::uint32_t> agents);
  void host_body(HostAgents& host);
  void make_stations(HostAgents& host);
  void make_agents(HostAgents& host);
  std::unique_ptr<Agent> make_agent(HostAgents& host, std::uint32_t number);
  void meet(HostAgents& host);
  void start_threads(HostAgents& host);
  void set_times(Duration begin);
  void measure_from(Duration at);
  void observe_from(Duration at);
  void watch_arrivals();

  std::string name_of(const PlannedAgent& agent) const;
  bool counts_as_sender(const PlannedAgent& agent) const;
  void run_until(Duration at);
  void advance(Duration at);
  bool in_any_process(bool own);
  void see_to_it_that_all_agree();
  void gather_results();
  bool is_here(std::uint32_t host) const;
  void run_measurement();
  void go_to(Duration at);
  void warm_up();
  bool is_steady();
  void measure_as_given();
  void look_at_engines();
  void look_outside(Watch& watch);
  void look_for_end(Watch& watch);
  void end(const Watch::End& why);
  std::string state(std::optional<std::size_t> flow = {}) const;
  std::uint64_t completed() const;
  void check_progress();
  bool still_waits(const FlowState& flow) const;
  void see_to_it_that_all_moved();
  Duration patience(std::size_t flow) const;
  void report_standstill(std::size_t flow);
  Snapshot snapshot() const;
  void look_at_waiting_senders();

  System& system_;
  const Workload& workload_;
  const Plan& plan_;
  Control control_;
  std::vector<FlowState> flows_;
  std::vector<std::uint64_t> stocks_;  // by flow: receives that all its receivers keep posted
  Arrivals arrivals_;
  std::vector<Duration> agents_busy_;               // by agent
  std::vector<std::unique_ptr<Station>> stations_;  // by agent
  std::vector<std::unique_ptr<Agent>> agents_;      // null: the agent has no work
  std::vector<std::uint32_t> sink_places_;          // by agent: index of its queue in FlowState::received
  std::vector<std::unique_ptr<HostAgents>> hosts_;
  std::size_t arrived_ = 0;
  std::unique_ptr<sc_core::sc_event> met_;
  std::unique_ptr<sc_core::sc_event> closing_;
  std::uintptr_t next_memory_;  // address for the memory of the next host
  Duration begin_{};            // begin of the agents' work
  Duration check_every_{};
  BitRate slowest_;  // slowest port of the system
  Duration limit_ = FlowState::kNever;
  std::optional<Watch::End> ended_;
  bool failure_is_known_ = false;            // all processes know the failure
  std::optional<SnapshotServer> snapshots_;  // only for a watched run
  Snapshot before_, after_;
  std::optional<Snapshot> middle_;
};

}  // namespace rnicsim::sim::bench
