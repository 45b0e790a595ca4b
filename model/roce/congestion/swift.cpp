// SPDX-License-Identifier: Apache-2.0
// Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020,
// section 3, algorithm 1): a window that keeps the delay near a target. Below the target the window grows by `ai`
// packets a round trip. Above it the window shrinks in proportion to the excess, at most once a round trip. The target
// grows with the number of hops, and as the window becomes small (flow scaling), so that many flows fit in the queue.
//
// A window below one packet is a pace: one packet in rtt / cwnd. A larger window is not paced, as in the paper.
// A packet is the largest that the queue pair has sent so far: the window's unit is a full packet, and here each queue
// pair has an MTU of its own.
//
// There are two windows, and the smaller one counts: of the fabric, and of the endpoint. Acknowledgements bring the
// delay inside the receiver (Telemetry::delay). That delay moves the endpoint's window, with a target of its own that
// neither hops nor flow scaling raise. The rest of the round trip moves the fabric's window. Until a peer tells the
// delay, the round trip is the fabric's, and the endpoint has no window.
#include <algorithm>
#include <cmath>

#include "model/roce/congestion/control_tools.h"

namespace rnicsim::roce {
namespace {

using namespace rnicsim::literals;

// The paper gives few values. Those of base_target, h, fs_range, fs_min_cwnd, fs_max_cwnd, ai, beta and max_mdf are
// htsim's, which calls most of them guesses. endpoint_target is this model's: in 10 us a line of 100 Gb/s brings 125
// KB, so that the window acts before nic.receive_buffer.xoff.
struct SwiftParams {
  Duration base_target = 20_us;
  Duration h = 3053_ns;  // base_target / 6.55
  std::uint32_t hops = 1;
  Duration fs_range = 100_us;  // 5 x base_target
  double fs_min_cwnd = 0.1;
  double fs_max_cwnd = 100;
  Duration endpoint_target = 10_us;
  double ai = 1;
  double beta = 0.8;
  double max_mdf = 0.5;
  std::uint32_t retx_reset_threshold = 5;
  double min_cwnd = 0.001;
  BitRate min_rate{100'000'000};

  void describe(ParamVisitor& visit) {
    visit.param("base_target", base_target, "target of the round-trip time on a path without hops, for a large window",
                {1e3, 1e12});
    visit.param("h", h, "increase of the target for each hop", {0, 1e12});
    visit.param("hops", hops, "switches on the path", {0, 255});
    visit.param("fs_range", fs_range, "largest increase of the target by a small window", {0, 1e12});
    visit.param("fs_min_cwnd", fs_min_cwnd, "packets of a window, or fewer, that raises the target by fs_range",
                {1e-6, 1e9});
    visit.param("fs_max_cwnd", fs_max_cwnd, "packets of a window, or more, that does not raise the target",
                {1e-6, 1e9});
    visit.param("endpoint_target", endpoint_target,
                "target of the delay inside the receiver, from a packet's arrival to its acknowledgement; 0: the "
                "endpoint has no window, and the whole round trip is the fabric's",
                {0, 1e12});
    visit.param("ai", ai, "packets by which the window grows in a round trip below the target", {1e-6, 1e6});
    visit.param("beta", beta, "share of the excess over the target by which the window shrinks", {0, 1});
    visit.param("max_mdf", max_mdf,
                "the largest share of the window that a round trip can take; a loss takes exactly this share", {0, 1});
    visit.param("retx_reset_threshold", retx_reset_threshold,
                "timeouts in a row that set the window to min_cwnd; fewer timeouts count as a loss", {1, 1000});
    visit.param("min_cwnd", min_cwnd, "packets of the smallest window; min_rate still counts", {1e-9, 1e3});
    visit.param("min_rate", min_rate, "lowest rate", {1, 1e12});
    visit.refuse(fs_min_cwnd >= fs_max_cwnd, "fs_min_cwnd", "is not less than", "fs_max_cwnd");
  }
};

class Swift final : public CongestionControl {
 public:
  // The first window is the bytes that the line sends in the base target.
  Swift(const PolicyParams* params, BitRate line)
      : params_(params_as<SwiftParams>(*params)),
        bounds_(params_.min_rate, line),
        scale_(static_cast<double>(params_.fs_range.ps) /
               (1 / std::sqrt(params_.fs_min_cwnd) - 1 / std::sqrt(params_.fs_max_cwnd))),
        fabric_{bytes_in(params_.base_target, bounds_.line()), {}} {}

  Allowance allowance(Duration) override {
    return {.rate = window() < packet() ? rate() : bounds_.line(), .window = whole_window(window(), packet_)};
  }
  // The rate is the window divided by the last round trip.
  ControlState state(Duration) override { return {.rate = rate()}; }
  bool wants_acknowledgements() const override { return true; }
  bool wants_endpoint_delay() const override { return params_.endpoint_target != Duration{}; }
  std::optional<RoundTripLimit> round_trip_limit() const override {
    return RoundTripLimit{unscaled_target(), "base_target + h x hops"};
  }

  void sent(std::uint32_t bytes, Duration) override { packet_ = std::max(packet_, bytes); }
  void acknowledged(const AckFacts& ack, Duration now) override {
    timeouts_ = 0;
    if (ack.rtt <= Duration{}) return;
    rtt_ = ack.rtt;
    answered_ = std::max(answered_, static_cast<double>(ack.bytes));
    const auto inside = wants_endpoint_delay() ? std::min(ack.endpoint, ack.rtt) : Duration{};
    answered(fabric_, ack.rtt - inside, fabric_target(), ack.bytes, now);
    if (inside == Duration{}) return;
    if (!endpoint_) endpoint_ = {fabric_.bytes, {}};
    answered(*endpoint_, inside, params_.endpoint_target, ack.bytes, now);
  }
  // A loss does not show whether the fabric or the endpoint lost the packet.
  void lost(Duration now) override {
    timeouts_ = 0;
    shrink_both(1 - params_.max_mdf, now);
  }
  void timed_out(Duration now) override {
    if (++timeouts_ < params_.retx_reset_threshold) return shrink_both(1 - params_.max_mdf, now);
    set(fabric_, 0);
    fabric_.cuts.reacted(now);
    if (endpoint_) endpoint_->bytes = fabric_.bytes;
  }

 private:
  struct DelayWindow {
    double bytes;  // less than a packet: a pace
    TimeApart cuts;
  };

  double packet() const { return std::max<std::uint32_t>(packet_, 1); }
  double window() const { return endpoint_ ? std::min(fabric_.bytes, endpoint_->bytes) : fabric_.bytes; }
  Duration round_trip() const { return rtt_ > Duration{} ? rtt_ : params_.base_target; }
  double rate() const { return bounds_.within(rate_of(window(), round_trip())); }

  // The target of a large window: flow scaling adds nothing.
  Duration unscaled_target() const { return params_.base_target + params_.h * params_.hops; }
  Duration fabric_target() const {
    const auto scaled = scale_ * (1 / std::sqrt(fabric_.bytes / packet()) - 1 / std::sqrt(params_.fs_max_cwnd));
    const auto raised = std::clamp(scaled, 0.0, static_cast<double>(params_.fs_range.ps));
    return unscaled_target() + Duration{static_cast<std::int64_t>(raised)};
  }
  void answered(DelayWindow& window, Duration delay, Duration target, std::uint64_t bytes, Duration now) {
    if (delay < target) return grow(window, static_cast<double>(bytes) / packet());
    const auto excess = static_cast<double>((delay - target).ps) / static_cast<double>(delay.ps);
    shrink(window, std::max(1 - params_.beta * excess, 1 - params_.max_mdf), now);
  }
  // One acknowledgement may cover many packets, and more than the present window: it counts for one window at most.
  void grow(DelayWindow& window, double packets) {
    const auto most = std::max(window.bytes / packet(), 1.0);
    set(window, window.bytes + params_.ai * packet() * std::min(packets, most) / most);
  }
  void shrink(DelayWindow& window, double factor, Duration now) {
    if (!window.cuts.passed(now, round_trip())) return;
    const auto before = window.bytes;
    set(window, window.bytes * factor);
    if (window.bytes < before) window.cuts.reacted(now);
  }
  void shrink_both(double factor, Duration now) {
    shrink(fabric_, factor, now);
    if (endpoint_) shrink(*endpoint_, factor, now);
  }
  // Upper bound: the bytes that the line sends in a round trip, and the bytes that wait for one acknowledgement.
  void set(DelayWindow& window, double bytes) {
    const auto most = bytes_in(std::max(round_trip(), params_.base_target), bounds_.line()) + answered_;
    window.bytes = std::max(std::min(bytes, most), params_.min_cwnd * packet());
  }

  const SwiftParams& params_;
  const RateBounds bounds_;
  const double scale_;  // ps: flow scaling is scale_ over the root of the window
  DelayWindow fabric_;
  std::optional<DelayWindow> endpoint_;  // nullopt: no acknowledgement has brought a delay
  std::uint32_t packet_ = 0;             // bytes of the largest packet sent
  Duration rtt_{};                       // last round trip; 0: none yet
  double answered_ = 0;                  // bytes of the largest acknowledgement
  std::uint32_t timeouts_ = 0;           // in a row
};

const PolicyEntry<CongestionControl> kSwift{"swift", make_control<Swift>, make_policy_params<SwiftParams>};

}  // namespace
}  // namespace rnicsim::roce
