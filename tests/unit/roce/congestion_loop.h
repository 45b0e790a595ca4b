// SPDX-License-Identifier: Apache-2.0
// For tests of congestion controls: a control with parameters that a test sets by name, and a small closed loop. In
// the loop some flows, each with a control of its own, share one port. The port has a queue without end, marks
// packets, and adds telemetry. Receivers acknowledge each few packets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/base/policy_params.h"
#include "model/roce/congestion.h"

namespace rnicsim::roce::congestion_loop {

using namespace rnicsim::literals;

inline constexpr BitRate kLine = 100_Gbps;
inline constexpr std::uint32_t kPacket = 4178;  // bytes on the wire of 4096 of payload

// Sets one parameter by its name.
class ParamSetter final : public ParamVisitor {
 public:
  ParamSetter(std::string name, double value) : name_(std::move(name)), value_(value) {}
  bool found() const { return found_; }

  void param(const char* name, Duration& value, const char*, Range) override { set(name, value.ps); }
  void param(const char* name, ByteCount& value, const char*, Range) override { set(name, value.bytes); }
  void param(const char* name, BitRate& value, const char*, Range) override { set(name, value.bits_per_second); }
  void param(const char* name, std::uint32_t& value, const char*, Range) override { set(name, value); }
  void param(const char* name, std::uint64_t& value, const char*, Range) override { set(name, value); }
  void param(const char* name, double& value, const char*, Range) override { set(name, value); }
  void param(const char* name, bool& value, const char*) override { set(name, value); }
  void param(const char*, std::string&, const char*, std::span<const char* const>) override {}

 protected:
  void enter(const char*) override {}
  void leave() override {}

 private:
  template <class Value>
  void set(const std::string& name, Value& value) {
    if (name != name_) return;
    value = static_cast<Value>(value_);
    found_ = true;
  }

  const std::string name_;
  const double value_;
  bool found_ = false;
};

// Fixture for tests of the control with the given name.
class ControlTest : public testing::Test {
 protected:
  explicit ControlTest(const char* name)
      : name_(name), params_(find_policy<CongestionControl>(name)->make_params()()) {}

  // Call before a control is made.
  void set(const std::string& name, double value) {
    ParamSetter setter(name, value);
    params_->describe(setter);
    ASSERT_TRUE(setter.found()) << name;
  }
  std::unique_ptr<CongestionControl> make(BitRate line = kLine) const {
    return make_policy<CongestionControl>(name_, params_.get(), line);
  }
  CongestionControl& control() {
    if (!control_) control_ = make();
    return *control_;
  }
  double rate() { return control().allowance(now_).rate / 1e9; }
  double window() { return static_cast<double>(control().allowance(now_).window); }
  double alpha() { return control().state(now_).alpha; }

  // One packet left long ago, so that the control knows how large a packet is.
  void send(std::uint32_t bytes = kPacket) { control().sent(bytes, now_); }
  // An acknowledgement arrives `after` the previous event.
  void acknowledge(AckFacts facts, Duration after = 10_us) { control().acknowledged(facts, now_ += after); }
  void lose(Duration after) { control().lost(now_ += after); }
  void time_out(Duration after) { control().timed_out(now_ += after); }

 private:
  const char* const name_;
  const std::unique_ptr<PolicyParams> params_;
  std::unique_ptr<CongestionControl> control_;
  Duration now_{};
};

// --- The loop.
struct LoopParams {
  BitRate line = kLine;                 // of each sender and of the port that they share
  Duration base_rtt = 12_us;            // round-trip time of a packet that meets no queue
  std::uint32_t packet = kPacket;       // bytes
  std::uint32_t acknowledge_every = 1;  // packets of a flow; the last packet in flight is acknowledged, too
  std::uint64_t mark_above = ~0ull;     // bytes in the queue at which a leaving packet is marked
};

class Loop {
 public:
  template <class Make>
  Loop(const LoopParams& params, std::size_t flows, const Make& make) : params_(params), flows_(flows) {
    for (std::size_t i = 0; i < flows; ++i) {
      flows_[i].control = make();
      at(Duration{static_cast<std::int64_t>(random_() % 2'000'000)}, [this, i] { send(i); });  // within 2 us
    }
  }

  void run_until(Duration end) {
    while (!events_.empty() && events_.top().at <= end) {
      const auto event = events_.top();
      events_.pop();
      now_ = event.at;
      event.happen();
    }
    now_ = end;
  }
  void stop(std::size_t flow) { flows_[flow].active = false; }

  // Resets all counts.
  void measure() {
    for (auto& flow : flows_) flow.delivered = 0;
    since_ = now_;
    left_ = 0, queue_sum_ = 0, most_queue_ = 0;
  }
  // Gb/s since measure().
  double rate(std::size_t flow) const {
    return static_cast<double>(flows_[flow].delivered) * 8e3 / static_cast<double>((now_ - since_).ps);
  }
  double total_rate() const {
    double sum = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) sum += rate(i);
    return sum;
  }
  // Largest deviation of a flow's rate from the mean rate, relative to the mean.
  double unfairness() const {
    const auto mean = total_rate() / static_cast<double>(flows_.size());
    double most = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) most = std::max(most, std::abs(rate(i) / mean - 1));
    return most;
  }
  const CongestionControl& control(std::size_t flow) const { return *flows_[flow].control; }
  // Mean of the bytes in the queue as packets left, without the leaving packet.
  double mean_queue() const { return left_ == 0 ? 0 : queue_sum_ / static_cast<double>(left_); }
  double most_queue() const { return static_cast<double>(most_queue_); }

 private:
  struct Event {
    Duration at;
    std::uint64_t order;
    std::function<void()> happen;
    bool operator<(const Event& other) const { return at != other.at ? other.at < at : other.order < order; }
  };
  struct Packet {
    std::size_t flow;
    Duration sent;
  };
  struct Acknowledgement {
    std::uint64_t bytes = 0;
    bool marked = false;
    Duration sent{};  // time at which the flow's last packet left the sender
    PortState port;   // port state when that packet began to leave
  };
  struct Flow {
    std::unique_ptr<CongestionControl> control;
    PortState port{};  // port state of the last acknowledgement
    bool active = true;
    double rate = Allowance::kUnlimited;
    Duration paid_at{};  // time at which the sent bytes are paid for at `rate`
    Duration wakes_at{-1};
    Duration arrives_at{};  // arrival time of the flow's last packet at the queue
    std::uint64_t in_flight = 0;
    std::uint64_t on_the_way = 0;      // packets that have not left the port
    std::uint64_t delivered = 0;       // bytes
    std::uint32_t unacknowledged = 0;  // packets that the receiver has not acknowledged
    Acknowledgement next;
  };

  void at(Duration when, std::function<void()> happen) { events_.push({when, order_++, std::move(happen)}); }

  // As in the NIC: a new rate scales the remaining pacing time.
  void settle(Flow& flow, double rate) {
    if (flow.paid_at > now_ && rate != flow.rate)
      flow.paid_at = now_ + Duration{std::llround(static_cast<double>((flow.paid_at - now_).ps) * flow.rate / rate)};
    flow.rate = rate;
  }
  void send(std::size_t number) {
    auto& flow = flows_[number];
    if (!flow.active) return;
    const auto allowed = flow.control->allowance(now_);
    settle(flow, allowed.rate);
    if (flow.in_flight != 0 && flow.in_flight >= allowed.window) return;
    if (flow.paid_at > now_) return wake(number, flow.paid_at);
    flow.control->sent(params_.packet, now_);
    flow.in_flight += params_.packet;
    ++flow.on_the_way;
    flow.paid_at = now_ + Duration{std::llround(params_.packet * 8e12 / flow.rate)};
    // The last bit leaves after the packet's time on the line. The queue takes the whole packet after a further random
    // time, at most as long, in order, as our switches do. Without the random time the same flow would find room every
    // time.
    const auto left = now_ + tick();
    const auto jitter = random_() % static_cast<std::uint64_t>(tick().ps);
    flow.arrives_at = std::max(flow.arrives_at, left + Duration{static_cast<std::int64_t>(jitter)});
    at(flow.arrives_at, [this, number, left] { arrive({number, left}); });
    wake(number, flow.paid_at);
  }
  void wake(std::size_t number, Duration when) {
    auto& flow = flows_[number];
    if (flow.wakes_at == when) return;
    flow.wakes_at = when;
    at(when, [this, number, when] {
      if (flows_[number].wakes_at != when) return;
      flows_[number].wakes_at = Duration{-1};
      send(number);
    });
  }

  Duration tick() const { return params_.line.time_for(ByteCount{params_.packet}); }

  void arrive(const Packet& packet) {
    queue_.push_back(packet);
    if (queue_.size() == 1) begin();
  }
  // The first packet begins to leave: its telemetry has the port's state at this time.
  void begin() {
    began_ = {.rate = params_.line, .at = now_, .sent = sent_, .queue = (queue_.size() - 1) * params_.packet};
    at(now_ + tick(), [this] { leave(); });
  }
  void leave() {
    const auto packet = queue_.front();
    const auto port = began_;
    queue_.pop_front();
    const auto waiting = queue_.size() * params_.packet;
    sent_ += params_.packet;
    if (!queue_.empty()) begin();
    ++left_;
    queue_sum_ += static_cast<double>(waiting);
    most_queue_ = std::max<std::uint64_t>(most_queue_, waiting);
    auto& flow = flows_[packet.flow];
    flow.delivered += params_.packet;
    --flow.on_the_way;
    auto& next = flow.next;
    next.bytes += params_.packet;
    next.marked = next.marked || waiting > params_.mark_above;
    next.sent = packet.sent;
    next.port = port;
    if (++flow.unacknowledged < params_.acknowledge_every && flow.on_the_way != 0) return;
    flow.unacknowledged = 0;
    at(now_ + params_.base_rtt - tick(),
       [this, number = packet.flow, answer = std::exchange(next, {})] { acknowledged(number, answer); });
  }
  void acknowledged(std::size_t number, const Acknowledgement& answer) {
    auto& flow = flows_[number];
    flow.in_flight -= answer.bytes;
    AckFacts facts{.rtt = now_ - answer.sent, .bytes = answer.bytes, .in_flight = flow.in_flight};
    if (flow.control->wants_marks()) facts.marked = answer.marked;
    const auto before = std::exchange(flow.port, answer.port);
    const HopChange hop{.rate = params_.line,
                        .over = answer.port.at - before.at,
                        .sent = answer.port.sent - before.sent,
                        .queue = answer.port.queue,
                        .queue_before = before.queue};
    if (flow.control->wants_telemetry() && before.at != Duration{}) facts.hops = {&hop, 1};
    flow.control->acknowledged(facts, now_);
    send(number);
  }

  const LoopParams params_;
  std::vector<Flow> flows_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::mt19937_64 random_{1};
  Duration now_{};
  std::deque<Packet> queue_;  // queue of the port; the first packet is leaving
  PortState began_;           // port state when the first packet began to leave
  std::uint64_t sent_ = 0;    // bytes
  Duration since_{};
  std::uint64_t left_ = 0;  // packets, since measure()
  double queue_sum_ = 0;
  std::uint64_t most_queue_ = 0;
};

// --- Random events in the order of time. For each, the allowance must stay within `least` and the line's rate, and the
// window must hold at least one packet.
inline void walk(CongestionControl& control, std::uint64_t seed, double least) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t most) { return random() % most; };
  const auto line = static_cast<double>(kLine.bits_per_second);
  Duration now{};
  std::uint32_t packet = 0;
  HopChange hops[Telemetry::kHops];
  for (int step = 0; step < 3000; ++step) {
    now += Duration{static_cast<std::int64_t>(below(below(20) == 0 ? 10'000'000'000 : 20'000'000))};
    const auto what = below(20);
    if (what < 8) {
      const auto bytes = static_cast<std::uint32_t>(84 + below(4095));
      packet = std::max(packet, bytes);
      control.sent(bytes, now);
    } else if (what < 17) {
      if (control.wants_telemetry())
        for (auto& hop : hops)
          hop = {.rate = {below(9) == 0 ? 0 : 10'000'000'000 * (1 + below(40))},
                 .over = {static_cast<std::int64_t>(below(9) == 0 ? 0 : below(30'000'000))},
                 .sent = below(9) == 0 ? 0 : below(400'000),
                 .queue = below(3) == 0 ? 0 : below(10'000'000),
                 .queue_before = below(10'000'000)};
      const auto told = control.wants_telemetry() ? below(Telemetry::kHops + 1) : 0;
      const auto rtt = below(4) == 0 ? 0 : below(below(9) == 0 ? 1'000'000'000 : 60'000'000);
      control.acknowledged(
          {.rtt = Duration{static_cast<std::int64_t>(rtt)},
           .bytes = below(5) == 0 ? 0 : below(300'000),
           .in_flight = below(4) * below(200'000),
           .endpoint =
               Duration{static_cast<std::int64_t>(control.wants_endpoint_delay() ? below(2) * below(40'000'000) : 0)},
           .marked = below(2) == 0,
           .hops = {hops, told}},
          now);
    } else if (what == 17) {
      control.lost(now);
    } else {
      what == 18 ? control.timed_out(now) : control.notified(now);
    }
    const auto allowed = control.allowance(now);
    ASSERT_TRUE(allowed.rate >= least && allowed.rate <= line) << "seed " << seed << ", step " << step;
    ASSERT_GE(allowed.window, std::max(packet, 1u)) << "seed " << seed << ", step " << step;
    ASSERT_GT(control.next_change(), now);
    const auto state = control.state(now);
    ASSERT_TRUE(state.rate >= least && state.rate <= line);
    ASSERT_TRUE(state.alpha >= 0 && state.alpha <= 1);
    // Time alone changes nothing, and a query changes nothing.
    ASSERT_EQ(control.allowance(now + 1_ms).rate, allowed.rate);
    ASSERT_EQ(control.allowance(now + 1_ms).window, allowed.window);
  }
}
inline constexpr std::uint64_t kWalks = 40;  // seeds

}  // namespace rnicsim::roce::congestion_loop
