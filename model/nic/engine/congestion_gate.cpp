// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/congestion_gate.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rnicsim::nic {
namespace {

constexpr double kPsPerSecond = 1e12;
constexpr double kLongest = 1e15;  // ps: keeps times within a Duration when the rate is nearly 0

Duration time_at(double bits, double rate) {
  return {static_cast<std::int64_t>(std::min(std::ceil(bits * kPsPerSecond / rate), kLongest))};
}

}  // namespace

// A change of the rate scales the time that is still to pass.
void CongestionGate::settle(double rate, Duration now) {
  if (rate == rate_) return;
  if (paid_at_ > now) {
    const auto rest = static_cast<double>((paid_at_ - now).ps);
    const auto longer = rate == roce::Allowance::kUnlimited ? 0 : rest * rate_ / rate;
    paid_at_ = now + Duration{static_cast<std::int64_t>(std::min(std::ceil(longer), kLongest))};
  }
  rate_ = rate;
}

const roce::Allowance& CongestionGate::allowed(Duration now) {
  if (now < allowed_until_) return allowed_;
  allowed_ = control_->allowance(now);
  allowed_until_ = control_->next_change();
  settle(allowed_.rate, now);
  return allowed_;
}

Duration CongestionGate::not_before(Duration now, const UnansweredPackets* same, std::uint64_t other) {
  const auto window = allowed(now).window;
  // After the window became smaller, no packet in flight may request an acknowledgement: one more packet goes, and
  // requests one.
  if (same != nullptr && same->asked() != 0 && same->bytes() + other >= window) return kNever;
  return paid_at_ <= now ? paid_at_ : std::min(paid_at_, allowed_until_);
}

void CongestionGate::sent(std::uint32_t bytes, Duration now) {
  control_for_input().sent(bytes, now);
  allowed(now);
  if (rate_ != roce::Allowance::kUnlimited) paid_at_ = std::max(paid_at_, now) + time_at(8.0 * bytes, rate_);
}

// The last packet that fits into the window requests an acknowledgement, which will open the window.
bool CongestionGate::is_to_ask(const UnansweredPackets& same, std::uint32_t bytes, std::uint64_t other, Duration now) {
  return same.unasked() + 1 >= ack_every_ || same.bytes() + bytes + other >= allowed(now).window;
}

bool CongestionGate::request_sent(roce::Psn end, std::uint32_t bytes, bool asks, Duration now) {
  if (!tracks_) return asks;
  asks = is_to_ask(requests_, bytes, 0, now) || asks;
  requests_.sent(end, bytes, asks);
  return asks;
}

std::optional<Telemetry> CongestionGate::carried() const {
  if (telemetry_) return Telemetry();
  return wants_delay_ ? std::optional(Telemetry::delay_request()) : std::nullopt;
}

void CongestionGate::take_telemetry(const Telemetry& block, Duration now) {
  if (const auto delay = block.delay())
    endpoint_ = *delay;
  else if (telemetry_)
    hops_ = telemetry_->read(block, now);
}

void CongestionGate::acknowledged(roce::Psn oldest, bool marked, Duration now) {
  if (!tracks_) return;
  const auto packets = requests_.answered(oldest, now);
  answered(packets, requests_.bytes(), marked, now);
}

void CongestionGate::answered(const UnansweredPackets::Answered& packets, std::uint64_t in_flight, bool marked,
                              Duration now) {
  if (!tracks_) return;
  marked_ = marked_ || marked;
  if (packets.bytes == 0) return;
  control_for_input().acknowledged({.rtt = packets.rtt,
                                    .bytes = packets.bytes,
                                    .in_flight = in_flight,
                                    .endpoint = std::exchange(endpoint_, {}),
                                    .marked = std::exchange(marked_, false),
                                    .hops = std::exchange(hops_, {})},
                                   now);
}

std::optional<ControlView> CongestionGate::new_view(Duration now) {
  const ControlView view{control_->state(now), control_->allowance(now).window};
  if (last_view_ && *last_view_ == view) return std::nullopt;
  last_view_ = std::make_unique<ControlView>(view);
  return view;
}

}  // namespace rnicsim::nic
