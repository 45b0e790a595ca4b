// SPDX-License-Identifier: Apache-2.0
// DCTCP (Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3; RFC 8257) for a queue pair: a window that
// marks of switches (ECN) make smaller, by as much as there are marks. alpha is a moving average of the share of bytes
// that were acknowledged with a mark. A mark takes alpha / 2 of the window, at most once a window. A round trip
// without marks adds `ai` packets.
//
// A loss halves the window. A timeout leaves one packet, from where slow start leads to half of the window before, as
// in TCP. A queue pair begins with what the line sends in base_rtt, as in HPCC's simulator (rdma-hw.cc), without slow
// start. As there, the window is paced: a rate of the window in base_rtt, so that an acknowledgement of many packets
// makes no burst. A window below one packet is that pace alone.
// A packet is the largest that the queue pair has sent so far.
#include <algorithm>

#include "model/roce/congestion/control_tools.h"

namespace rnicsim::roce {
namespace {

using namespace rnicsim::literals;

// The paper's g; base_rtt and min_rate are those of HPCC's simulator.
struct DctcpParams {
  double g = 1.0 / 16;
  double initial_alpha = 1;
  double ai = 1;
  Duration base_rtt = 13_us;
  BitRate min_rate{100'000'000};

  void describe(ParamVisitor& visit) {
    visit.param("g", g, "share of the newest window in alpha", {0, 1});
    visit.param("initial_alpha", initial_alpha, "alpha before the first window is acknowledged", {0, 1});
    visit.param("ai", ai, "packets by which the window grows in a round trip without marks", {1e-6, 1e6});
    visit.param("base_rtt", base_rtt,
                "round-trip time of the empty fabric: the rate is the window divided by this time", {1e3, 1e12});
    visit.param("min_rate", min_rate, "lowest rate", {1, 1e12});
  }
};

class Dctcp final : public CongestionControl {
 public:
  Dctcp(const PolicyParams* params, BitRate line)
      : params_(params_as<DctcpParams>(*params)),
        bounds_(params_.min_rate, line),
        window_(bytes_in(params_.base_rtt, bounds_.line())),
        alpha_(params_.initial_alpha) {}

  Allowance allowance(Duration) override { return {.rate = rate(), .window = whole_window(window_, packet_)}; }
  ControlState state(Duration) override { return {.rate = rate(), .alpha = alpha_}; }
  bool wants_acknowledgements() const override { return true; }
  bool wants_marks() const override { return true; }

  void sent(std::uint32_t bytes, Duration) override { packet_ = std::max(packet_, bytes); }
  void acknowledged(const AckFacts& ack, Duration) override {
    if (ack.rtt > Duration{}) rtt_ = ack.rtt;
    answered_ = std::max(answered_, static_cast<double>(ack.bytes));
    estimate(ack);
    if (reduced_ && since_cut_.over(ack.bytes)) reduced_ = false;
    if (reduced_) return;
    if (!ack.marked) return grow(static_cast<double>(ack.bytes));
    set_window(window_ * (1 - alpha_ / 2));
    slow_start_below_ = 0;
    reduced_ = true;
    since_cut_.begin(ack.in_flight);
  }
  void lost(Duration now) override {
    if (!losses_.passed(now, round_trip())) return;
    losses_.reacted(now);
    set_window(window_ / 2);
    slow_start_below_ = 0;
  }
  void timed_out(Duration now) override {
    losses_.reacted(now);
    if (window_ <= packet()) return;
    slow_start_below_ = window_ / 2;
    set_window(packet());
  }

 private:
  double packet() const { return std::max<std::uint32_t>(packet_, 1); }
  double rate() const { return bounds_.within(rate_of(window_, params_.base_rtt)); }
  Duration round_trip() const { return std::max(rtt_, params_.base_rtt); }

  // Updates alpha once a window.
  void estimate(const AckFacts& ack) {
    acknowledged_ += ack.bytes;
    if (ack.marked) marked_ += ack.bytes;
    if (!since_estimate_.over(ack.bytes)) return;
    alpha_ += params_.g * (static_cast<double>(marked_) / static_cast<double>(acknowledged_) - alpha_);
    acknowledged_ = marked_ = 0;
    since_estimate_.begin(ack.in_flight);
  }
  // One acknowledgement may cover many packets, and more than the present window: it counts for one window at most.
  void grow(double bytes) {
    const auto counted = std::min(bytes, std::max(window_, packet()));
    const bool slow_start = window_ < slow_start_below_;
    set_window(window_ + (slow_start ? counted : params_.ai * packet() * counted / std::max(window_, packet())));
  }
  // Upper bound: the bytes that the line sends in a round trip, and the bytes that wait for one acknowledgement.
  void set_window(double window) {
    const auto most = bytes_in(round_trip(), bounds_.line()) + answered_;
    window_ = std::clamp(window, bytes_in(params_.base_rtt, bounds_.least()), most);
  }

  const DctcpParams& params_;
  const RateBounds bounds_;
  double window_;  // bytes; less than a packet: a pace
  double alpha_;
  double slow_start_below_ = 0;     // bytes
  std::uint32_t packet_ = 0;        // bytes of the largest packet sent
  Duration rtt_{};                  // last round trip; 0: none yet
  double answered_ = 0;             // bytes of the largest acknowledgement
  std::uint64_t acknowledged_ = 0;  // bytes since the last estimate
  std::uint64_t marked_ = 0;        // bytes of `acknowledged_` with a mark
  RoundTrip since_estimate_;
  RoundTrip since_cut_;
  bool reduced_ = false;  // a mark has reduced the window that is now in flight
  TimeApart losses_;
};

const PolicyEntry<CongestionControl> kDctcp{"dctcp", make_control<Dctcp>, make_policy_params<DctcpParams>};

}  // namespace
}  // namespace rnicsim::roce
