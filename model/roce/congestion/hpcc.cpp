// SPDX-License-Identifier: Apache-2.0
// HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 3, algorithm 1): a window computed
// from the state that the ports on the path report (telemetry). For each port, the bytes sent between two
// acknowledgements and the bytes that wait there give an estimate of the bytes in flight, as a share of the bytes that
// the port sends in base_rtt. The busiest port counts. The window is scaled so that this share becomes eta, plus w_ai
// so that flows become equal.
//
// Each acknowledgement computes the window from a reference window. The reference moves once a round trip: otherwise
// acknowledgements of the same queue would make the window smaller again and again. The window is paced: its bytes in
// base_rtt. A window below one packet is that pace alone.
// The default of w_ai follows the paper's rule (section 3.3), w_ai = winit x (1 - eta) / N, where winit is the line's
// rate x base_rtt, for N = 16: the steps of N flows together are not more than the part of the window that eta leaves
// free.
// Acknowledgements without telemetry change nothing. The paper assumes a fabric without loss. The reaction to a loss is
// this model's: the loss keeps loss_factor of the window.
#include <algorithm>
#include <span>

#include "model/roce/congestion/control_tools.h"

namespace rnicsim::roce {
namespace {

using namespace rnicsim::literals;

// The paper's values, section 5, but for w_ai; min_rate is that of the authors' simulator.
struct HpccParams {
  double eta = 0.95;
  std::uint32_t max_stage = 5;
  ByteCount w_ai{500};
  Duration base_rtt = 13_us;
  double loss_factor = 0.5;
  BitRate min_rate{100'000'000};

  void describe(ParamVisitor& visit) {
    visit.param("eta", eta, "target utilization of a port, as a share of its rate", {0.01, 1});
    visit.param(
        "max_stage", max_stage,
        "round trips in which the window rises only by w_ai, before the window jumps to the free rate; 0: always",
        {0, 1000});
    visit.param("w_ai", w_ai,
                "bytes by which the window rises in a round trip; the paper's rule is line's rate x base_rtt x "
                "(1 - eta) / number of flows, which is 500 bytes for 16 flows at 100 Gb/s",
                {0, 1e9});
    visit.param("base_rtt", base_rtt,
                "T: round-trip time of the empty fabric, the same for all flows: at least the time of the longest "
                "path, and the time that an acknowledgement waits for packets",
                {1e3, 1e12});
    visit.param("loss_factor", loss_factor, "share of the window that remains after a loss; 1: no reaction", {0, 1});
    visit.param("min_rate", min_rate, "lowest rate", {1, 1e12});
  }
};

class Hpcc final : public CongestionControl {
 public:
  Hpcc(const PolicyParams* params, BitRate line)
      : params_(params_as<HpccParams>(*params)),
        bounds_(params_.min_rate, line),
        least_(bytes_in(params_.base_rtt, bounds_.least())),
        most_(bytes_in(params_.base_rtt, bounds_.line())),
        window_(most_),
        reference_(most_) {}

  Allowance allowance(Duration) override { return {.rate = rate(), .window = whole_window(window_, packet_)}; }
  ControlState state(Duration) override { return {.rate = rate()}; }
  bool wants_acknowledgements() const override { return true; }
  bool wants_telemetry() const override { return true; }
  std::optional<RoundTripLimit> round_trip_limit() const override {
    return RoundTripLimit{params_.base_rtt, "base_rtt"};
  }

  void sent(std::uint32_t bytes, Duration) override { packet_ = std::max(packet_, bytes); }
  void acknowledged(const AckFacts& ack, Duration) override {
    const bool over = round_.over(ack.bytes);
    const bool measured = measure(ack.hops);
    if (measured) adjust(over);
    // A round trip that ends without telemetry lasts until the next telemetry, which then moves the reference.
    if (!over || (!measured && began_)) return;
    round_.begin(ack.in_flight);
    began_ = true;
  }
  void lost(Duration now) override { cut(now); }
  void timed_out(Duration now) override { cut(now); }

 private:
  double rate() const { return bounds_.within(rate_of(window_, params_.base_rtt)); }

  // Updates the estimate. False: no port has enough data.
  bool measure(std::span<const HopChange> hops) {
    double busiest = -1;
    Duration since{};
    for (const auto& hop : hops) {
      if (hop.over <= Duration{} || hop.rate.bits_per_second == 0) continue;
      const auto passed = rate_of(static_cast<double>(hop.sent), hop.over);
      const auto waiting = rate_of(static_cast<double>(std::min(hop.queue, hop.queue_before)), params_.base_rtt);
      const auto used = (passed + waiting) / static_cast<double>(hop.rate.bits_per_second);
      if (used <= busiest) continue;
      busiest = used;
      since = hop.over;
    }
    if (busiest < 0) return false;
    const auto share =
        static_cast<double>(std::min(since, params_.base_rtt).ps) / static_cast<double>(params_.base_rtt.ps);
    used_ += share * (busiest - used_);
    return true;
  }
  // `moves`: the reference window moves, too.
  void adjust(bool moves) {
    const auto excess = used_ / params_.eta;
    const bool jumps = excess >= 1 || stage_ >= params_.max_stage;
    // No bytes in flight anywhere: the whole window is free.
    const auto wanted = !jumps ? reference_ : excess > 0 ? reference_ / excess : most_;
    window_ = std::clamp(wanted + static_cast<double>(params_.w_ai.bytes), least_, most_);
    if (!moves) return;
    reference_ = window_;
    stage_ = jumps ? 0 : stage_ + 1;
  }
  // At most once a round trip: one gap causes several signs of loss.
  void cut(Duration now) {
    if (!cuts_.passed(now, params_.base_rtt)) return;
    cuts_.reacted(now);
    stage_ = 0;
    window_ = reference_ = std::clamp(window_ * params_.loss_factor, least_, most_);
  }

  const HpccParams& params_;
  const RateBounds bounds_;
  const double least_;  // bytes of the smallest window
  const double most_;   // bytes of the largest window
  double window_;       // bytes; less than a packet: a pace
  double reference_;
  double used_ = 1;           // bytes in flight at the busiest port, as a share of its rate x base_rtt
  std::uint32_t stage_ = 0;   // round trips in a row without a jump
  std::uint32_t packet_ = 0;  // bytes of the largest packet sent
  RoundTrip round_;           // since the reference window moved
  bool began_ = false;        // an acknowledgement has begun a round trip
  TimeApart cuts_;
};

const PolicyEntry<CongestionControl> kHpcc{"hpcc", make_control<Hpcc>, make_policy_params<HpccParams>};

}  // namespace
}  // namespace rnicsim::roce
