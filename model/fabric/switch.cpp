// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/switch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/base/policy.h"
#include "model/base/policy_params.h"

namespace rnicsim::fabric {
namespace {

constexpr std::uint8_t kGroupBit = 1;                 // multicast bit in the first byte of a MAC address
constexpr std::uint64_t kSeedsApart = 1 << 20;        // greater than the number of switches
constexpr std::uint64_t kPathGenerator = 1ull << 32;  // number of the path generator; ports use their own numbers

std::vector<BitRate> rates_of(const SwitchWiring& wiring) {
  std::vector<BitRate> rates;
  for (const auto& line : wiring.lines) rates.push_back(line.rate);
  return rates;
}

// Bytes sent in `busy_ps` picoseconds at `rate`.
std::uint64_t bytes_of(Counter busy_ps, BitRate rate) {
  constexpr std::uint64_t kPsPerByte = 8 * 1'000'000'000'000ull;  // at 1 b/s
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{busy_ps} * rate.bits_per_second / kPsPerByte);
}

// Locally administered address, because a switch's port has none in the topology.
FrameBody::Mac mac_of(std::uint32_t number, std::uint32_t port) {
  const auto byte = [](std::uint32_t value) { return static_cast<std::uint8_t>(value & 0xff); };
  return {0x06, 0, byte(number >> 8), byte(number), byte(port >> 8), byte(port)};
}

// A unique seed for each switch; with the run's seed 1 it is the switch's number.
std::uint64_t seed_of(const SwitchWiring& wiring) { return (wiring.seed - 1) * kSeedsApart + wiring.number; }

std::unique_ptr<PathChoice> make_path_choice(const SwitchParams& params, const SwitchWiring& wiring) {
  const auto seed = seed_of(wiring);
  const PathChoice::Random random{seed, SmallGenerator(seed, kPathGenerator)};
  return make_policy<PathChoice>(params.path.name, params.path.params(params.path.name), random);
}

}  // namespace

Switch::Port::Port(Switch& owner, std::uint32_t number, const LineTiming& timing, std::uint64_t seed)
    : home(owner),
      number(number),
      timing(timing),
      queues([this] { home.leave_due(*this); }, owner.params_.port_buffer,
             static_cast<std::uint8_t>(owner.params_.pfc.priorities),
             make_policy<QueueDiscipline>(owner.params_.scheduler.name,
                                          owner.params_.scheduler.params(owner.params_.scheduler.name))),
      generator(seed, number) {}

Switch::Switch(sc_core::sc_module_name name, const SwitchParams& params, SwitchWiring wiring)
    : sc_module(name),
      params_(params),
      wiring_(std::move(wiring)),
      priorities_(params.priority.map()),
      path_(make_path_choice(params, wiring_)),
      memory_(params, wiring_.lines.size()),
      ingress_(params.pfc, rates_of(wiring_), memory_),
      watchdog_(params.pfc.watchdog, wiring_.lines.size()),
      ecn_(params.ecn),
      jitter_begins_(params.jitter == SwitchParams::kJitterWords[0]),
      jitter_(params.jitter == SwitchParams::kJitterWords[2] || (jitter_begins_ && params.ecn.priorities != 0)) {
  const auto& lines = wiring_.lines;
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    alike_ = alike_ && lines[i] == lines.front();
    ports_.push_back(std::make_unique<Port>(*this, i, lines[i], seed_of(wiring_)));
  }
  ingress_.pause.bind([this](std::uint32_t port, PriorityPause&& pause) { send_pause(port, pause); });
  watchdog_.waits_since = [this](PauseWatchdog::Queue queue) {
    return ports_[queue.port]->queues.waits_since(queue.priority);
  };
  watchdog_.storm_began = [this](PauseWatchdog::Queue queue) { begin_storm(queue); };
  watchdog_.storm_ended = [this](PauseWatchdog::Queue) { ++counters_.pfcwd_restored; };
  if (params_.histograms) record_queues();
}

// The histograms subscribe to trace points, so a switch without histograms has no extra work for a frame.
void Switch::record_queues() {
  records_.resize(ports_.size());
  queue_changed.subscribe(
      [this](const QueueChanged& queue) { records_[queue.port].length(queue.priority, queue.bytes, now()); });
  queue_paused.subscribe(
      [this](const QueuePaused& queue) { records_[queue.port].pause(queue.priority, queue.until, now()); });
}

void Switch::receive(std::size_t port, Frame&& frame, Duration delay) {
  ports_[port]->arriving.push(now() + delay, std::move(frame));
}

void Switch::arrive_due(Port& port) {
  Frame frame;
  while (port.arriving.pop_due(frame))
    jitter_ ? put_off(port, std::move(frame)) : arrive(port.number, std::move(frame));
}

void Switch::put_off(Port& port, Frame&& frame) {
  const auto most = static_cast<std::uint64_t>(port.timing.time_for(frame).ps);
  const Duration later{static_cast<std::int64_t>(port.generator.draw_below(most))};
  port.last_put_off = std::max(now() + later, port.last_put_off);
  port.late.push(port.last_put_off, std::move(frame));
}

void Switch::late_due(Port& port) {
  Frame frame;
  while (port.late.pop_due(frame)) arrive(port.number, std::move(frame));
}

void Switch::arrive(std::uint32_t from, Frame&& frame) {
  if ((frame.destination_mac()[0] & kGroupBit) != 0) return arrive_for_group(from, frame);
  const auto to = way_of(frame);
  if (!to) {
    ++counters_.unknown;
    return;
  }
  ++counters_.frames;
  counters_.bytes += frame.size();
  forward(from, *to, std::move(frame));
}

std::optional<std::uint32_t> Switch::way_of(const Frame& frame) {
  const auto* place = wiring_.stations->find(mac_number(std::span(frame.destination_mac())));
  if (place == nullptr) return std::nullopt;
  if (place->box == wiring_.number) return place->port;
  const auto set = wiring_.way_to[place->box];
  const auto& ways = wiring_.ways[set];
  if (ways.empty()) return std::nullopt;
  if (ways.size() == 1) return ways.front();
  return ways[path_->choose(frame, {ways, set}, view_)];
}

void Switch::arrive_for_group(std::uint32_t from, const Frame& frame) {
  if (is_mac_control(frame)) return take_control(from, frame);
  ++counters_.frames;
  counters_.bytes += frame.size();
  for (const std::uint32_t to : wiring_.flooded)
    if (to != from) forward(from, to, Frame(frame));
}

void Switch::forward(std::uint32_t from, std::uint32_t to, Frame&& frame) {
  const auto priority = priorities_.of(frame);
  if (take_room(from, to, priority, frame)) send(from, to, priority, std::move(frame));
}

// False: no room, and the frame is lost.
bool Switch::take_room(std::uint32_t from, std::uint32_t to, std::uint8_t priority, const Frame& frame) {
  if (ingress_.lossless(priority)) {
    if (watchdog_.action() == PauseWatchdog::Action::drop && watchdog_.in_storm({to, priority})) {
      ++counters_.pfcwd_discards;
      lose(ports_[to]->counted.tx_discards);
      return false;
    }
    if (ingress_.hold(from, priority, frame.size())) return true;
    lose(ports_[from]->counted.rx_discards);
    return false;
  }
  auto& port = *ports_[to];
  const bool fits = port.queues.has_room(frame, priority) && !lose_not_ect(port, priority, frame) &&
                    (!memory_.counts_lossy() || memory_.take_lossy(port.queue_use[priority], frame.size()));
  if (!fits) lose(port.counted.tx_discards);
  return fits;
}

void Switch::send(std::uint32_t from, std::uint32_t to, std::uint8_t priority, Frame&& frame) {
  auto& port = *ports_[to];
  const auto out = port.timing.time_for(frame);
  const auto in = alike_ ? out : ports_[from]->timing.time_for(frame);
  // Cut-through, unless the frame arrives more slowly than it is sent: then store and forward.
  const auto begins = (in > out ? now() : now() - in) + params_.latency;
  if (ecn_.is_active(priority) && !ecn_.at_dequeue()) mark(port, priority, frame);
  port.queues.send(std::move(frame), begins, out, priority, from);
  tell_length(port, priority);
  counters_.most_waiting = std::max<Counter>(counters_.most_waiting, port.queues.frames());
}

void Switch::leave_due(Port& port) {
  TransmitPort::Departure leaving;
  while (port.queues.pop_due(leaving)) {
    const auto took = static_cast<Counter>(leaving.took.ps);
    if (leaving.priority == TransmitPort::kControl) {
      ++counters_.tx_pause;
      port.counted.control_ps += took;
      pause_sent(leaving.frame);
    } else {
      tell_length(port, leaving.priority);
      port.counted.busy_ps[leaving.priority] += took;
      port.counted.wait_ps[leaving.priority] += static_cast<Counter>(leaving.waited().ps);
      if (ecn_.is_active(leaving.priority) && ecn_.at_dequeue()) mark(port, leaving.priority, leaving.frame);
      if (ingress_.lossless(leaving.priority)) {
        ingress_.let_go(leaving.origin, leaving.priority, leaving.frame.size());
        watchdog_.left({port.number, leaving.priority});
      } else if (memory_.counts_lossy()) {
        memory_.give_back(port.queue_use[leaving.priority], leaving.frame.size());
        ingress_.look();
      }
      if (leaving.frame.telemetry() != nullptr) add_hop(port, leaving);
    }
    port.out(std::move(leaving.frame));
  }
}

// The queue's length without this frame decides: at enqueue the frame is not in the queue yet, at dequeue it has left.
void Switch::mark(Port& port, std::uint8_t priority, Frame& frame) {
  if (!frame.is_markable()) return;
  port.counted.markable |= 1u << priority;
  if (!ecn_.draws_mark(priority, port.queues.bytes(priority), port.generator)) return;
  frame.mark();
  ++port.counted.ecn_marked;
  if (marked) marked(frame);
}

// Records the port at the time when the frame's first bit left, because a switch writes into the frame at this time. So
// this frame is neither in the sent bytes nor in the queue. The same is true of frames that arrived since.
void Switch::add_hop(const Port& port, TransmitPort::Departure& leaving) const {
  constexpr std::uint32_t kMostPorts = 1 << 16;
  const auto& counted = port.counted;
  const auto busy_ps = std::accumulate(counted.busy_ps.begin(), counted.busy_ps.end(), counted.control_ps) -
                       static_cast<Counter>(leaving.took.ps);
  leaving.frame.add_hop({.rate = port.timing.rate,
                         .at = leaving.began,
                         .sent = bytes_of(busy_ps, port.timing.rate),
                         .queue = leaving.behind,
                         .id = wiring_.number * kMostPorts + port.number});
}

bool Switch::lose_not_ect(Port& port, std::uint8_t priority, const Frame& frame) {
  if (!ecn_.drops_not_ect() || !ecn_.is_active(priority)) return false;
  return (frame.traffic_class() & kEcnMask) == kNotEct &&
         ecn_.draws_mark(priority, port.queues.bytes(priority), port.generator);
}

void Switch::lose(Counter& counter) {
  ++counter;
  jitter_ = jitter_ || jitter_begins_;
}

// Sends a pause to the port's peer, ahead of all waiting frames.
void Switch::send_pause(std::uint32_t port, const PriorityPause& pause) {
  auto& way = *ports_[port];
  auto frame = to_frame(pause, mac_of(wiring_.number, port));
  const auto took = way.timing.time_for(frame);
  way.queues.send(std::move(frame), now(), took, TransmitPort::kControl, port);
}

void Switch::take_control(std::uint32_t from, const Frame& frame) {
  const auto pause = priority_pause_of(frame);
  if (!pause) return;
  ++counters_.rx_pause;
  auto& port = *ports_[from];
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
    if ((pause->enabled >> priority & 1) != 0 && ingress_.lossless(priority))
      take_pause(port, priority, now() + pause->time(priority, port.timing.rate));
}

void Switch::take_pause(Port& port, std::uint8_t priority, Duration until) {
  watchdog_.paused({port.number, priority}, until);
  const bool ignored =
      watchdog_.action() == PauseWatchdog::Action::forward && watchdog_.in_storm({port.number, priority});
  if (ignored) return;
  port.counted.paused_ps[priority] += port.paused_so_far(priority);
  port.paused_since[priority] = now();
  port.paused_until[priority] = until;
  port.queues.pause(priority, until);
  if (queue_paused) queue_paused({port.number, priority, until});
}

void Switch::begin_storm(PauseWatchdog::Queue queue) {
  ++counters_.pfcwd_storms;
  auto& port = *ports_[queue.port];
  switch (watchdog_.action()) {
    case PauseWatchdog::Action::drop:
      for (const auto& [frame, from] : port.queues.drop_waiting(queue.priority)) {
        ++counters_.pfcwd_discards;
        lose(port.counted.tx_discards);
        ingress_.let_go(from, queue.priority, frame.size());
      }
      tell_length(port, queue.priority);
      return;
    case PauseWatchdog::Action::forward:
      port.counted.paused_ps[queue.priority] += port.paused_so_far(queue.priority);
      port.paused_until[queue.priority] = now();
      if (queue_paused) queue_paused({queue.port, queue.priority, now()});
      return port.queues.pause(queue.priority, now());
    case PauseWatchdog::Action::alert: return;
  }
}

std::vector<StoppedBuffer> Switch::stopped_buffers() const {
  std::vector<StoppedBuffer> buffers;
  for (const auto& port : ports_)
    for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
      if (const auto stopped = ingress_.stopped(port->number, priority)) buffers.push_back(*stopped);
  return buffers;
}

std::vector<PausedBytes> Switch::paused_bytes() const {
  std::vector<PausedBytes> paused;
  std::vector<std::uint64_t> by_origin(ports_.size());
  for (const auto& port : ports_)
    for (std::uint8_t priority = 0; priority < kPriorities; ++priority) {
      if (port->paused_until[priority] <= now()) continue;
      std::ranges::fill(by_origin, 0);
      port->queues.for_each(priority, [&](const Frame& frame, std::uint32_t from) { by_origin[from] += frame.size(); });
      for (std::uint32_t from = 0; from < by_origin.size(); ++from)
        if (by_origin[from] != 0) paused.push_back({from, port->number, priority, by_origin[from]});
    }
  return paused;
}

SwitchCounters Switch::counters() const {
  auto counters = counters_;
  counters.path_changes = path_->changes();
  counters.most_shared = memory_.counts_lossy() ? memory_.most_shared() : 0;
  counters.most_headroom = memory_.most_headroom();
  for (const auto& port : ports_) {
    counters.most_bytes = std::max(counters.most_bytes, port->queues.most_bytes());
    const auto& counted = port->counted;
    const auto busy_ps = std::accumulate(counted.busy_ps.begin(), counted.busy_ps.end(), counted.control_ps);
    counters.tx_busy_ps += busy_ps;
    counters.port_busy_ps.push_back(busy_ps);
    counters.tx_wait_ps += std::accumulate(counted.wait_ps.begin(), counted.wait_ps.end(), Counter{0});
    counters.tx_paused_ps += port->queues.paused_ps();
    counters.tx_discards += counted.tx_discards;
    counters.rx_discards += counted.rx_discards;
    counters.ecn_marked += counted.ecn_marked;
  }
  return counters;
}

std::vector<PortHistograms> Switch::histograms() const {
  std::vector<PortHistograms> histograms;
  for (const auto& record : records_) histograms.push_back(record.at(now()));
  return histograms;
}

SwitchPortCounters Switch::port_counters(std::size_t number) const {
  const auto& port = *ports_[number];
  auto counters = port.counted;
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority) {
    counters.paused_ps[priority] += port.paused_so_far(priority);
    counters.stopped_ps[priority] = ingress_.stopped_ps(port.number, priority);
    counters.most_queue[priority] = port.queues.most_bytes(priority);
    counters.most_held[priority] = ingress_.most_held(port.number, priority);
  }
  return counters;
}

}  // namespace rnicsim::fabric
