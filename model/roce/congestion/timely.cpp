// SPDX-License-Identifier: Apache-2.0
// TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, section 4, algorithm
// 1): a rate that follows the gradient of the round-trip time. Between two thresholds the rate rises while round trips
// become shorter, and falls in proportion to their growth. Below t_low it always rises, above t_high it always falls.
//
// An update waits for the acknowledgement of a segment, and until min_rtt has passed since the last update. Zhu et al.
// do this in their model of TIMELY ("ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016).
// HPCC's simulator (rdma-hw.cc) makes one update in a measured round trip. This is too seldom if the queue is long:
// each round trip is then a multiple of the one before, and the queue outgrows the cuts. There is no window.
// With `patched` the control is Zhu et al.'s patched TIMELY. TIMELY has no fixed point of its own: unequal rates stay
// unequal. Between the thresholds patched TIMELY weighs the gradient, from -1/4 to 1/4. The rate falls by the distance
// of the round trip from t_low, so that all flows of a port have one fixed point, with equal rates.
// The paper assumes a fabric without loss. The reaction to a loss is this model's: the loss keeps loss_factor of the
// rate.
#include <algorithm>
#include <utility>

#include "model/roce/congestion/control_tools.h"

namespace rnicsim::roce {
namespace {

using namespace rnicsim::literals;

constexpr double kDeltaLine = 10e9;  // bits per second: `delta` is given for a line of this rate

// The paper's values, section 6; alpha, beta, t_high, min_rtt and min_rate are as HPCC's simulator has them.
struct TimelyParams {
  double alpha = 0.875;
  double beta = 0.8;
  Duration t_low = 50_us;
  Duration t_high = 500_us;
  Duration min_rtt = 20_us;
  BitRate delta{10'000'000};
  std::uint32_t hai_threshold = 5;
  std::uint32_t hai_factor = 5;
  ByteCount segment{16'000};
  bool patched = false;
  double loss_factor = 0.5;
  BitRate min_rate{100'000'000};

  void describe(ParamVisitor& visit) {
    visit.param("alpha", alpha, "share of the newest difference of two round trips in their moving average", {0, 1});
    visit.param("beta", beta, "share of the excess by which the rate falls", {0, 1});
    visit.param("t_low", t_low, "with shorter round trips the rate always rises", {0, 1e12});
    visit.param("t_high", t_high, "with longer round trips the rate always falls", {1e3, 1e12});
    visit.param("min_rtt", min_rtt,
                "round trip of the empty fabric: the unit of the gradient, and the least time between two updates",
                {1e3, 1e12});
    visit.param(
        "delta", delta,
        "increase of the rate at an update, for each 10 Gb/s of the line rate: at 100 Gb/s ten times this value",
        {1, 1e12});
    visit.param("hai_threshold", hai_threshold,
                "updates in a row without a growing round-trip time, after which the rate rises faster", {1, 1000});
    visit.param("hai_factor", hai_factor, "factor of delta for this faster increase", {1, 1000});
    visit.param("segment", segment, "acknowledged bytes on the wire before an update", {0, 1e12});
    visit.param("patched", patched,
                "between the thresholds the rate falls by the distance of the round trip from t_low, weighed by the "
                "gradient (CoNEXT 2016; with beta = 0.008 there)");
    visit.param("loss_factor", loss_factor, "share of the rate that remains after a loss; 1: no reaction", {0, 1});
    visit.param("min_rate", min_rate, "lowest rate", {1, 1e12});
    visit.refuse(t_low > t_high, "t_low", "is more than", "t_high");
    visit.refuse(patched && t_low == Duration{}, "t_low", "is 0: with patched this value is the unit of the distance");
  }
};

class Timely final : public CongestionControl {
 public:
  Timely(const PolicyParams* params, BitRate line)
      : params_(params_as<TimelyParams>(*params)),
        bounds_(params_.min_rate, line),
        delta_(static_cast<double>(params_.delta.bits_per_second) * bounds_.line() / kDeltaLine),
        rate_(bounds_.line()) {}

  Allowance allowance(Duration) override { return {.rate = rate_}; }
  ControlState state(Duration) override { return {.rate = rate_}; }
  bool wants_acknowledgements() const override { return true; }
  std::optional<RoundTripLimit> round_trip_limit() const override { return RoundTripLimit{params_.t_high, "t_high"}; }

  void acknowledged(const AckFacts& ack, Duration now) override {
    acknowledged_ += ack.bytes;
    if (acknowledged_ < params_.segment.bytes || ack.rtt <= Duration{}) return;
    if (!updates_.passed(now, params_.min_rtt)) return;
    updates_.reacted(now);
    acknowledged_ = 0;
    const auto last = std::exchange(rtt_, ack.rtt);
    if (last != Duration{}) update(ack.rtt - last);
  }
  void lost(Duration now) override { cut(now); }
  void timed_out(Duration now) override { cut(now); }

 private:
  // `growth`: change of the round trip since the last update.
  void update(Duration growth) {
    difference_ = (1 - params_.alpha) * difference_ + params_.alpha * static_cast<double>(growth.ps);
    const auto gradient = difference_ / static_cast<double>(params_.min_rtt.ps);
    const bool between = rtt_ >= params_.t_low && rtt_ <= params_.t_high;
    not_growing_ = between && gradient <= 0 ? not_growing_ + 1 : 0;
    if (rtt_ < params_.t_low)
      rate_ += delta_;
    else if (rtt_ > params_.t_high)
      rate_ *= 1 - params_.beta * (1 - static_cast<double>(params_.t_high.ps) / static_cast<double>(rtt_.ps));
    else if (params_.patched)
      approach(gradient);
    else if (gradient <= 0)
      rate_ += delta_ * (not_growing_ > params_.hai_threshold ? params_.hai_factor : 1);
    else
      rate_ *= 1 - params_.beta * gradient;
    rate_ = bounds_.within(rate_);
  }
  void approach(double gradient) {
    const auto weight = std::clamp(2 * gradient + 0.5, 0.0, 1.0);
    const auto low = static_cast<double>(params_.t_low.ps);
    const auto error = (static_cast<double>(rtt_.ps) - low) / low;
    rate_ = delta_ * (1 - weight) + rate_ * (1 - params_.beta * weight * error);
  }
  // At most once a round trip: one gap causes several signs of loss.
  void cut(Duration now) {
    if (!cuts_.passed(now, std::max(rtt_, params_.min_rtt))) return;
    cuts_.reacted(now);
    not_growing_ = 0;
    rate_ = bounds_.within(rate_ * params_.loss_factor);
  }

  const TimelyParams& params_;
  const RateBounds bounds_;
  const double delta_;  // bits a second
  double rate_;
  double difference_ = 0;           // ps: moving average of the growth
  Duration rtt_{};                  // round trip at the last update; 0: none yet
  std::uint32_t not_growing_ = 0;   // updates in a row between the thresholds
  std::uint64_t acknowledged_ = 0;  // bytes since the last update
  TimeApart updates_;
  TimeApart cuts_;
};

const PolicyEntry<CongestionControl> kTimely{"timely", make_control<Timely>, make_policy_params<TimelyParams>};

}  // namespace
}  // namespace rnicsim::roce
