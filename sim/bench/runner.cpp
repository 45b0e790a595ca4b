// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

#include "model/host/kernel_agent.h"
#include "model/nic/engine/timer_unit.h"
#include "model/nic/nic.h"
#include "model/roce/qp_core.h"
#include "model/roce/timers.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/bench/agents/churn.h"
#include "sim/bench/agents/exchange.h"
#include "sim/bench/agents/frame_sink.h"
#include "sim/bench/agents/ping_pong.h"
#include "sim/bench/agents/receiver.h"
#include "sim/bench/agents/sender.h"
#include "sim/bench/agents/sequencer.h"
#include "sim/bench/results/assessment.h"
#include "sim/bench/results/steadiness.h"
#include "sim/config/config.h"
#include "sim/engine_choice.h"
#include "sim/os/progress_line.h"
#include "sim/processes/boundary.h"
#include "sim/simulated_host.h"

namespace rnicsim::sim::bench {
namespace {

using namespace rnicsim::literals;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Seed of an agent. It depends on the run's seed and on flow, host and thread, not on the number of agents.
std::uint64_t seed_of(std::uint64_t seed, const PlannedAgent& agent) {
  std::uint64_t mixed = seed;
  for (const std::uint64_t part : {agent.flow, agent.host, agent.thread}) {
    mixed += 0x9e3779b97f4a7c15 * (part + 1);
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed ^= mixed >> 27;
  }
  return mixed;
}

// The agents' memory has the same addresses in all runs, and in all processes of a run: packets contain them.
constexpr std::uintptr_t kFirstMemory = 0x2000'0000'0000;
constexpr std::uintptr_t kMemoryApart = 2 << 20;

// Half-width of the confidence interval, relative to the rate, at which a run without a given time may end.
constexpr double kWellKnown = 0.05;

}  // namespace

Runner::Runner(System& system, const Workload& workload, const Plan& plan)
    : system_(system),
      workload_(workload),
      plan_(plan),
      flows_(workload.flows.size()),
      stocks_(workload.flows.size()),
      arrivals_(system, flows_),
      agents_busy_(plan.agents.size()),
      agents_(plan.agents.size()),
      sink_places_(plan.agents.size()),
      met_(std::make_unique<sc_core::sc_event>("bench_met")),
      closing_(std::make_unique<sc_core::sc_event>("bench_closing")),
      next_memory_(kFirstMemory) {
  for (std::size_t i = 0; i < flows_.size(); ++i) flows_[i].of_mix.resize(workload.flows[i].mix.size());
  for (std::size_t i = 0; i < plan.agents.size(); ++i) {
    const auto& agent = plan.agents[i];
    stations_.push_back(std::make_unique<Station>(agent, workload.flows[agent.flow]));
    auto& state = flows_[agent.flow];
    if (counts_as_sender(agent)) {
      ++state.senders;
      state.work.emplace_back();
    }
    if (!stations_.back()->has_frames()) continue;
    sink_places_[i] = static_cast<std::uint32_t>(state.received.size());
    state.received.push_back(0);
  }
  for (const auto& agent : plan.agents) {
    const auto& flow = workload.flows[agent.flow];
    if (agent.sends || !flow.takes_receives()) continue;
    stocks_[agent.flow] +=
        std::uint64_t{flow.receives()} * (flow.transport == Transport::raw || flow.srq ? 1 : agent.qps.size());
  }
  std::vector<std::vector<std::uint32_t>> of_hosts(plan.hosts);
  for (std::uint32_t i = 0; i < plan.agents.size(); ++i) of_hosts[plan.agents[i].host].push_back(i);
  for (std::uint32_t host = 0; host < plan.hosts; ++host)
    if (!of_hosts[host].empty()) make_host(host, std::move(of_hosts[host]));
  const Config& config = system.config();
  slowest_ = config.nic.port.rate;
  for (std::size_t i = 0; i < system.adapters(); ++i) slowest_ = std::min(slowest_, config.nic_of(i).port.rate);
  for (std::size_t i = 0; i < config.topology.cables.size(); ++i) slowest_ = std::min(slowest_, config.port_of(i).rate);
}

Runner::~Runner() = default;

void Runner::make_host(std::uint32_t host, std::vector<std::uint32_t> own) {
  auto agents = std::make_unique<HostAgents>();
  agents->agents = std::move(own);
  std::uint64_t bytes = 0;
  for (const auto i : agents->agents) bytes += memory_of(plan_, i, workload_.flows[plan_.agents[i].flow]);
  agents->memory = std::make_unique<host::SparseMemory>(bytes, next_memory_);
  next_memory_ += (bytes / kMemoryApart + 1) * kMemoryApart;
  Adapter& place = system_.adapter(host);
  agents->process = std::make_unique<host::SoftwareProcess>(
      fmt::format("agents{}", host).c_str(), system_.config().host_of(place.interface().host), place.agent(),
      [this, mine = agents.get()] { host_body(*mine); });
  agents->process->port().trust(agents->memory->bytes());
  hosts_.push_back(std::move(agents));
}

// --- Threads of the hosts.
void Runner::host_body(HostAgents& host) {
  try {
    make_stations(host);
    meet(host);
    for (const auto i : host.agents) stations_[i]->connect(stations_);
    make_agents(host);
    meet(host);
    if (is_here(plan_.agents[host.agents.front()].host)) start_threads(host);
  } catch (const std::runtime_error& error) {
    control_.fail(fmt::format("{}: {}", system_.adapter(plan_.agents[host.agents.front()].host).label(), error.what()));
  }
  host.process->port().leave();
  while (!control_.stopping || host.working != 0) sleep_on(*closing_);
  for (const auto i : host.agents) stations_[i]->destroy();
  host.devices.close();
}

void Runner::make_stations(HostAgents& host) {
  auto memory = host.memory->bytes();
  // Each context needs a doorbell page of its own before queue pairs take the rest.
  for (const auto i : host.agents) host.devices.of(plan_.agents[i], workload_.flows[plan_.agents[i].flow]);
  for (const auto i : host.agents) {
    const auto& agent = plan_.agents[i];
    const auto& flow = workload_.flows[agent.flow];
    const auto bytes = memory_of(plan_, i, flow);
    if (bytes != 0) host.process->port().back(memory.first(bytes), flow.page);
    stations_[i]->make(host.devices.of(agent, flow), memory.first(bytes), *stations_[agent.lender]);
    memory = memory.subspan(bytes);
  }
}

void Runner::make_agents(HostAgents& host) {
  for (const auto i : host.agents) {
    agents_[i] = make_agent(host, i);
    if (agents_[i]) agents_[i]->fill();
  }
}

std::unique_ptr<Agent> Runner::make_agent(HostAgents& host, std::uint32_t number) {
  const auto& agent = plan_.agents[number];
  const auto& flow = workload_.flows[agent.flow];
  auto& station = *stations_[number];
  auto& state = flows_[agent.flow];
  auto& port = host.process->port();
  const auto name = name_of(agent);
  const auto seed = seed_of(workload_.seed, agent);
  if (flow.churns()) return std::make_unique<Churn>(station, state, control_, port, name);
  if (flow.ping_pong) return std::make_unique<PingPong>(station, stations_, state, control_, port, name);
  if (agent.sends && flow.sequence)
    return std::make_unique<Sequencer>(station, stations_, state, control_, port, name, seed);
  if (posts_wrs(agent, flow)) return std::make_unique<Sender>(station, stations_, state, control_, port, name, seed);
  if (station.has_frames())
    return std::make_unique<FrameSink>(station, state, sink_places_[number], control_, port, name);
  if (flow.takes_receives()) return std::make_unique<Receiver>(station, state, control_, name);
  return nullptr;
}

// Waits until all hosts have called it.
void Runner::meet(HostAgents& host) {
  host.process->port().settle();
  const std::size_t wanted = (arrived_ / hosts_.size() + 1) * hosts_.size();
  if (++arrived_ == wanted) {
    if (arrived_ == 2 * hosts_.size()) {
      set_times(now());
      watch_arrivals();
      control_.report();
    }
    wake(*met_);
  }
  while (arrived_ < wanted && !control_.stopping) sleep_on(*met_);
  if (control_.stopping) throw std::runtime_error("another host failed");
}

void Runner::start_threads(HostAgents& host) {
  for (const auto i : host.agents) {
    if (!agents_[i]) continue;
    ++host.working;
    host.process->spawn(fmt::format("agent{}", i), [this, i, &host] {
      host.process->port().meter(agents_busy_[i]);
      agents_[i]->run();
      if (--host.working == 0) wake(*closing_);
    });
  }
}

// The answering end of a ping-pong does not count as a sender.
bool Runner::counts_as_sender(const PlannedAgent& agent) const {
  return agent.sends || workload_.flows[agent.flow].both_ways;
}

void Runner::set_times(Duration begin) {
  const auto& measure = workload_.measure;
  begin_ = begin;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const auto& flow = workload_.flows[i];
    auto& state = flows_[i];
    state.begin = begin + flow.start;
    if (flow.stop) state.end = begin + *flow.stop;
    if (measure.operations) state.wanted = *measure.operations;
    state.progress = begin;
  }
  if (measure.warmup)
    measure_from(begin + *measure.warmup);
  else
    observe_from(std::ranges::max(flows_, {}, &FlowState::begin).begin);
  for (const auto& agent : plan_.agents)
    if (counts_as_sender(agent) && !is_here(agent.host)) --flows_[agent.flow].senders;
}

void Runner::measure_from(Duration at) {
  const auto& measure = workload_.measure;
  before_.at = at;
  for (auto& state : flows_) {
    state.measured_from = std::max(at, state.begin);
    if (measure.duration) state.measured_until = std::min(at + *measure.duration, state.end);
    state.begin_batches(state.measured_from, state.work.size());
  }
}

// Nothing before the first turn will be measured.
void Runner::observe_from(Duration at) {
  before_.at = at;
  for (auto& state : flows_) {
    state.observed.emplace(at);
    state.measured_from = at;
    state.begin_batches(at, state.work.size());
    state.turn = at + Duration{Measure::kFirstLook.ps / 2};
    state.after_turn = state.empty(state.turn);
  }
}

// Payload counts at the receiver; for READs and atomics at the requester. For a ping-pong, one of its two directions
// counts.
void Runner::watch_arrivals() {
  for (std::size_t i = 0; i < plan_.agents.size(); ++i) {
    const auto& agent = plan_.agents[i];
    const auto& flow = workload_.flows[agent.flow];
    if (flow.ping_pong && agent.sends) continue;
    const std::uint32_t header = flow.transport == Transport::ud ? roce::kGrhBytes : 0;
    const auto watch = [&](std::uint32_t number) {
      arrivals_.add(agent.host, number, agent.flow, header);
      if (!agent.sends && flow.takes_receives()) arrivals_.receives(agent.host, number);
    };
    for (const auto* qp : stations_[i]->qps()) watch(qp->qp_num);
    if (const auto* wq = stations_[i]->frames().wq()) watch(wq->wq_num);
  }
}

std::string Runner::name_of(const PlannedAgent& agent) const {
  return fmt::format("{} flow[{}] thread {} ({})", system_.adapter(agent.host).label(), agent.flow, agent.thread,
                     agent.sends ? "from" : "to");
}

// --- The main thread.
void Runner::run_until(Duration at) {
  at = std::min(at, limit_);
  while (now() < at && control_.failure().empty()) {
    advance(at);
    look_at_engines();
    if (now() < at && control_.failure().empty()) return;  // report() stopped the simulation
  }
  if (now() >= limit_ && control_.failure().empty()) end(at_simulated_limit(limit_));
}

// If other processes simulate a part of the system, time advances in windows.
void Runner::advance(Duration at) {
  auto* boundary = system_.boundary();
  if (boundary == nullptr) return rnicsim::run_until(at);
  while (now() < at && control_.failure().empty()) {
    rnicsim::run_until(at - now() > boundary->window() ? now() + boundary->window() : at);
    in_any_process(false);
  }
}

bool Runner::is_here(std::uint32_t host) const {
  const auto* boundary = system_.boundary();
  return boundary == nullptr || boundary->is_here(host);
}

bool Runner::in_any_process(bool own) {
  auto* boundary = system_.boundary();
  if (boundary == nullptr) return own;
  std::string failure = control_.failure();
  const bool is_so = boundary->any(own, failure);
  failure_is_known_ = !failure.empty();
  if (failure_is_known_) control_.note(std::move(failure));
  return is_so;
}

// All processes set up the whole system. If the results differ, packets name objects that do not exist.
void Runner::see_to_it_that_all_agree() {
  auto* boundary = system_.boundary();
  if (boundary == nullptr) return;
  in_any_process(false);
  if (failure_is_known_) return;
  Message own;
  ByteWriter out(own);
  out.put(now());
  for (const auto& station : stations_) {
    for (const auto* qp : station->qps()) out.put(qp->qp_num);
    if (const auto* wq = station->frames().wq()) out.put(wq->wq_num);
    for (const auto& region : station->regions()) out.put(region);
  }
  for (const auto& other : boundary->gather(own))
    if (!other.empty() && other != own) control_.note("the processes built different systems");
}

void Runner::gather_results() {
  auto* boundary = system_.boundary();
  if (boundary == nullptr || !control_.failure().empty()) return;
  const auto switches = static_cast<std::uint32_t>(system_.adapters());
  const Share share{.host = [&](auto i) { return is_here(i); },
                    .agent = [&](auto i) { return is_here(plan_.agents[i].host); },
                    .box = [&](auto i) { return is_here(switches + i); }};
  Message own;
  ByteWriter out(own);
  for (const auto* snapshot : {&before_, &after_}) put(out, *snapshot, share);
  if (middle_) put(out, *middle_, share);
  for (const auto& flow : flows_) put(out, flow);
  for (const auto& other : boundary->gather(std::move(own))) {
    if (other.empty()) continue;
    ByteReader in(other);
    for (auto* snapshot : {&before_, &after_}) take(in, *snapshot);
    if (middle_) take(in, *middle_);
    for (auto& flow : flows_) take(in, flow);
  }
}

std::string Runner::execute(Watch* watch) {
  if (watch != nullptr) {
    limit_ = watch->limits().simulated.value_or(FlowState::kNever);
    snapshots_.emplace(
        system_, [this](sim::Snapshot& snapshot) { snapshot.work = fmt::format("{} operations done", completed()); });
    watch->look_with([this, watch] { look_outside(*watch); });
  }
  system_.start();
  // No limit is known for the set-up; it has no part that waits for ever. kLongestSetup only detects a fault.
  constexpr Duration kLongestSetup = 10'000_s;
  while (arrived_ < 2 * hosts_.size() && control_.failure().empty()) {
    if (!sc_core::sc_pending_activity() || now() > kLongestSetup)
      control_.note("the set-up of the agents does not end");
    else if (now() >= limit_)
      end(at_simulated_limit(limit_));
    else
      sc_core::sc_start(sc_core::sc_time_to_pending_activity());
    look_at_engines();
  }
  check_every_ = Duration{INT64_MAX};
  for (std::size_t i = 0; i < flows_.size(); ++i) check_every_ = std::min(check_every_, Duration{patience(i).ps / 4});
  see_to_it_that_all_agree();
  if (control_.failure().empty()) run_measurement();
  if (!failure_is_known_) in_any_process(false);
  // Every process may have got the same signal, or reached the same limit.
  if (watch != nullptr && failure_is_known_ && !ended_) ended_ = watch->end();
  gather_results();
  return control_.failure();
}

void Runner::go_to(Duration at) {
  while (now() < at && control_.failure().empty()) {
    run_until(std::min(at, now() + check_every_));
    check_progress();
  }
}

void Runner::run_measurement() {
  if (workload_.measure.warmup)
    go_to(before_.at);
  else
    warm_up();
  if (workload_.measure.warmup || workload_.measure.is_given()) measure_as_given();
  look_at_waiting_senders();
  see_to_it_that_all_moved();
}

// Doubles the observed time at each turn, until the first half of all that time has no more influence. Then the second
// half is measured. If the workload sets the time to measure, the measurement begins at this point.
void Runner::warm_up() {
  const Duration from = before_.at;
  const auto& measure = workload_.measure;
  const auto turn_over = [&](Duration next) {
    for (auto& state : flows_) state.turn_over(next);
  };
  go_to(flows_.front().turn);
  for (Duration span = Measure::kFirstLook; control_.failure().empty(); span = 2 * span) {
    turn_over(from + span);
    before_ = snapshot();
    go_to(now() + Duration{span.ps / 4});
    middle_ = snapshot();
    go_to(from + span);
    if (!is_steady() && from + 2 * span <= begin_ + measure.limit) continue;
    after_ = snapshot();
    break;
  }
  if (!measure.is_given()) return;
  middle_.reset();
  turn_over(FlowState::kNever);
  for (auto& state : flows_) {
    state.observed.reset();
    if (measure.duration) state.measured_until = now() + *measure.duration;
    if (state.end_if_done()) control_.report();
  }
}

// For all flows in all processes; the process of rank 0 decides.
bool Runner::is_steady() {
  auto* boundary = system_.boundary();
  std::vector<FlowAssessment> flows;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const auto area = flows_[i].backlog.area_until(now());
    flows.emplace_back(flows_[i],
                       backlog_halves(before_.at, before_.backlogs[i], middle_->at, middle_->backlogs[i], now(), area),
                       stocks_[i]);
  }
  if (boundary != nullptr) {
    in_any_process(false);
    if (!control_.failure().empty()) return true;
    Message own;
    ByteWriter out(own);
    for (const auto& flow : flows) flow.put(out);
    for (const auto& other : boundary->gather(std::move(own))) {
      if (other.empty()) continue;
      ByteReader in(other);
      for (auto& flow : flows) flow.add(in);
    }
  }
  const auto level = level_of_trend(flows.size());
  const bool steady =
      std::ranges::all_of(flows, [&](const auto& flow) { return flow.is_steady(now(), level, kWellKnown); });
  return in_any_process(steady && (boundary == nullptr || boundary->rank() == 0));
}

// Records the state of the senders of this process. The armed timers of a queue pair show why the queue pair waits.
void Runner::look_at_waiting_senders() {
  for (std::size_t i = 0; i < plan_.agents.size(); ++i) {
    const auto& agent = plan_.agents[i];
    if (!counts_as_sender(agent) || !is_here(agent.host)) continue;
    const auto& timers = system_.adapter(agent.host).nic().blocks().timers;
    auto& work = flows_[agent.flow].work[agent.place];
    for (const auto* qp : stations_[i]->qps()) {
      const auto armed = [&](roce::Timer timer) {
        return timers.armed(nic::Qpn{qp->qp_num}, static_cast<std::uint32_t>(timer));
      };
      work.awaits_ack = work.awaits_ack || armed(roce::Timer::ack);
      work.awaits_rnr = work.awaits_rnr || armed(roce::Timer::rnr);
    }
  }
}

void Runner::measure_as_given() {
  const Duration from = now();
  before_ = snapshot();
  const auto finished = [](const FlowState& flow) { return flow.stopped || flow.senders == 0; };
  const Duration middle =
      workload_.measure.duration ? from + Duration{workload_.measure.duration->ps / 2} : FlowState::kNever;
  const Duration until = workload_.measure.duration ? from + *workload_.measure.duration : FlowState::kNever;
  while (now() < until && control_.failure().empty()) {
    if (workload_.measure.operations && std::ranges::all_of(flows_, finished)) break;
    if (workload_.measure.duration && !middle_ && now() >= middle) middle_ = snapshot();
    run_until(std::min({until, now() + check_every_, middle_ ? until : middle}));
    check_progress();
  }
  after_ = snapshot();
}

// Called at any time, on the stack of any thread.
void Runner::look_outside(Watch& watch) {
  if (system_.boundary() != nullptr && system_.boundary()->rank() != 0)
    return look_for_end(watch);  // only rank 0
                                 // shows progress
  if (progress_line::is_due())
    progress_line::show(fmt::format("{}; {} operations done", progress_line::pace(now()), completed()));
  if (watch.report_wanted()) {
    progress_line::erase();
    fmt::print(stderr, "rnicsim: simulated time {}\n{}", to_string(now()), state());
  }
  snapshots_->serve();
  look_for_end(watch);
}

void Runner::look_for_end(Watch& watch) {
  const auto why = watch.end();
  if (!why || ended_) return;
  end(*why);
  pause_run();
}

void Runner::end(const Watch::End& why) {
  ended_ = why;
  progress_line::erase();
  control_.note(fmt::format("{}\n{}", why.why, state()));
}

std::uint64_t Runner::completed() const {
  std::uint64_t sum = 0;
  for (const auto& flow : flows_) sum += flow.completed;
  return sum;
}

void Runner::look_at_engines() {
  if (!system_.engines().mismatch().empty()) control_.note(system_.engines().mismatch());
  if (!system_.deadlock().empty()) control_.note(system_.deadlock());
}

Snapshot Runner::snapshot() const {
  Snapshot taken;
  taken.at = now();
  for (std::size_t i = 0; i < system_.adapters(); ++i) {
    const auto counters = system_.counters(i);
    taken.hosts.emplace_back(counters);
    taken.packets += counters.nic.tx.packets;
  }
  for (std::size_t i = 0; i < system_.switches(); ++i) {
    taken.switches.emplace_back(system_.switch_counters(i));
    taken.ports.push_back(system_.switch_port_counters(i));
    taken.histograms.push_back(system_.switch_histograms(i));
  }
  taken.agents_busy = agents_busy_;
  for (const auto& flow : flows_) {
    taken.posted += flow.posted;
    taken.backlogs.push_back(flow.backlog.area_until(taken.at));
  }
  taken.events = sc_core::sc_delta_count() + Agenda::current()->served();
  taken.cpu_seconds = cpu_seconds();
  return taken;
}

std::optional<double> Runner::busy_share(std::size_t agent) const {
  if (!agents_[agent]) return std::nullopt;
  const auto busy = after_.agents_busy[agent] - before_.agents_busy[agent];
  // A thread's own time may be a little ahead.
  return std::min(1.0, static_cast<double>(busy.ps) / std::max(1.0, static_cast<double>(interval().ps)));
}

void Runner::close() {
  control_.stopping = true;
  wake(*closing_);
  wake(*met_);
  const auto finished = [](const auto& host) { return host->process->finished(); };
  while (!std::ranges::all_of(hosts_, finished) && sc_core::sc_pending_activity())
    sc_core::sc_start(sc_core::sc_time_to_pending_activity());
}

}  // namespace rnicsim::sim::bench
