// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/port.h"

#include <array>
#include <optional>

#include "model/base/policy.h"
#include "model/base/policy_params.h"
#include "model/base/ports/pause_frame.h"

namespace rnicsim::nic {
namespace {

constexpr std::array kRxPause{"rx_prio0_pause", "rx_prio1_pause", "rx_prio2_pause", "rx_prio3_pause",
                              "rx_prio4_pause", "rx_prio5_pause", "rx_prio6_pause", "rx_prio7_pause"};
constexpr std::array kTxPause{"tx_prio0_pause", "tx_prio1_pause", "tx_prio2_pause", "tx_prio3_pause",
                              "tx_prio4_pause", "tx_prio5_pause", "tx_prio6_pause", "tx_prio7_pause"};
constexpr std::array kRxPauseDuration{"rx_prio0_pause_duration", "rx_prio1_pause_duration", "rx_prio2_pause_duration",
                                      "rx_prio3_pause_duration", "rx_prio4_pause_duration", "rx_prio5_pause_duration",
                                      "rx_prio6_pause_duration", "rx_prio7_pause_duration"};
constexpr Counter kPsPerUs = 1'000'000;

}  // namespace

void PortCounters::describe(CounterVisitor& visit) const {
  visit.counter("tx_frames", tx_frames, "frames", "frames sent");
  visit.counter("tx_bytes", tx_bytes, "bytes", "bytes of these frames, without FCS");
  visit.busy("tx_busy", tx_busy_ps, 1, "time that the port was busy with these frames, with preamble, gap and FCS");
  visit.waited("tx_wait", tx_wait_ps, "time that frames waited for other frames and pauses, sum of all frames");
  visit.counter("rx_frames", rx_frames, "frames", "frames received");
  visit.counter("rx_bytes", rx_bytes, "bytes", "bytes of these frames, without FCS");
  visit.counter("rx_pause", rx_pause, "frames", "received frames that request or end a pause (IEEE 802.1Qbb)");
  visit.counter("tx_paused", tx_paused_ps, "ps", "time that priorities were paused, sum of all priorities");
  visit.most("tx_most_bytes", tx_most_bytes, "bytes", "most frames at a time in transmit pipeline and port");
  visit.counter("link_down_events_phy", link_down_events_phy, "events", "times that the link went down");
  visit.counter("link_down_discards", link_down_discards, "frames",
                "frames lost because the link was down, in both directions");
  for (std::size_t i = 0; i < kPriorities; ++i) {
    visit.counter(kRxPause[i], pauses[i].rx_pause, "frames", "frames received that pause the priority or end a pause");
    visit.counter(kTxPause[i], pauses[i].tx_pause, "frames", "frames sent that pause the priority or end a pause");
    visit.counter(kRxPauseDuration[i], pauses[i].rx_pause_duration, "us", "time that the priority was paused");
  }
}

Port::Port(sc_core::sc_module_name name, const PortParams& params)
    : sc_module(name),
      params_(params),
      timing_(params.timing()),
      rate_(timing_.rate),
      priorities_(params.priorities()),
      leaving_([this] { leave_due(); }, TransmitPort::kUnlimited, 0,
               make_policy<QueueDiscipline>(params.scheduler.name, params.scheduler.params(params.scheduler.name))) {}

void Port::send(Frame&& frame, Duration ready) {
  const auto took = rate_.time_for(timing_.bytes_for(frame));
  const auto priority = priorities_.of(frame);
  leaving_.send(std::move(frame), now() + ready, took, priority);
}

void Port::receive(Frame&& frame, Duration delay) {
  if (!link_up_) return void(++counters_.link_down_discards);
  ++counters_.rx_frames;
  counters_.rx_bytes += frame.size();
  if (received) received({frame.size(), delay});
  if (is_mac_control(frame)) return controls_.push(now() + delay, std::move(frame));
  frame_in(std::move(frame), delay);
}

void Port::send_control(Frame&& frame) {
  count_pause(frame, &PriorityPauseCounters::tx_pause);
  const auto took = rate_.time_for(timing_.bytes_for(frame));
  leaving_.send(std::move(frame), now(), took, TransmitPort::kControl);
}

void Port::reset() {
  leaving_.clear();
  for (std::uint8_t priority = 0; paused && priority < kPriorities; ++priority) paused({priority, now()});
  controls_.clear();
}

bool Port::set_link(bool up) {
  if (up == link_up_) return false;
  link_up_ = up;
  if (up) return true;
  ++counters_.link_down_events_phy;
  controls_.clear();
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority) obey(priority, now());
  return true;
}

void Port::leave_due() {
  TransmitPort::Departure leaving;
  while (leaving_.pop_due(leaving)) {
    auto& frame = leaving.frame;
    const auto id = frame.id();
    if (!link_up_) {
      ++counters_.link_down_discards;
      if (leaving.priority != TransmitPort::kControl) left(id);
      continue;
    }
    ++counters_.tx_frames;
    counters_.tx_bytes += frame.size();
    counters_.tx_busy_ps += static_cast<Counter>(leaving.took.ps);
    counters_.tx_wait_ps += static_cast<Counter>(leaving.waited().ps);
    if (scheduled) scheduled({id, leaving.began});
    sent(frame);
    frame_out(std::move(frame));
    if (leaving.priority != TransmitPort::kControl) left(id);
  }
}

void Port::control_due() {
  Frame frame;
  while (controls_.pop_due(frame)) {
    const auto pause = count_pause(frame, &PriorityPauseCounters::rx_pause);
    if (!pause) continue;
    ++counters_.rx_pause;
    for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
      if ((pause->enabled & params_.pfc) >> priority & 1) obey(priority, now() + pause->time(priority, timing_.rate));
  }
}

// Counts a control frame for each priority that it names. nullopt: not a pause frame.
std::optional<PriorityPause> Port::count_pause(const Frame& frame, Counter PriorityPauseCounters::*counter) {
  const auto pause = priority_pause_of(frame);
  if (!pause) return pause;
  for (std::size_t priority = 0; priority < kPriorities; ++priority)
    counters_.pauses[priority].*counter += pause->enabled >> priority & 1;
  return pause;
}

void Port::obey(std::uint8_t priority, Duration until) {
  leaving_.pause(priority, until);
  if (paused) paused({priority, until});
}

PortCounters Port::counters() const {
  auto counters = counters_;
  counters.tx_paused_ps = leaving_.paused_ps();
  counters.tx_most_bytes = leaving_.most_bytes();
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
    counters.pauses[priority].rx_pause_duration = leaving_.paused_ps(priority) / kPsPerUs;
  return counters;
}

}  // namespace rnicsim::nic
