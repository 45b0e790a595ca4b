#include "model/nic/engine/congestion_gate.h"

#include <algorithm>
#include <cmath>

namespace rnicsim::nic {
namespace {

constexpr double kPsPerSecond = 1e12;
constexpr double kLongest = 1e15;          // ps: a rate that is nearly 0 does not make a time that no Duration holds

Duration time_at(double bits, double rate) {
  return {static_cast<std::int64_t>(std::min(std::ceil(bits * kPsPerSecond / rate), kLongest))};
}

}  // namespace

// The time that is still to pass becomes longer or shorter by the ratio of the two rates.
void CongestionGate::settle(double rate, Duration now) {
  if (rate == rate_) return;
  if (paid_at_ > now) {
    const auto rest = static_cast<double>((paid_at_ - now).ps);
    const auto longer = rate == roce::Allowance::kUnlimited ? 0 : rest * rate_ / rate;
    paid_at_ = now + Duration{static_cast<std::int64_t>(std::min(std::ceil(longer), kLongest))};
  }
  rate_ = rate;
}

Duration CongestionGate::not_before(Duration now, bool windowed) {
  const auto allowed = control_->allowance(now);
  settle(allowed.rate, now);
  if (windowed && in_flight_ != 0 && in_flight_ >= allowed.window) return kNever;
  return paid_at_ <= now ? paid_at_ : std::min(paid_at_, control_->next_change());
}

void CongestionGate::sent(std::uint32_t bytes, Duration now) {
  control_->sent(bytes, now);
  settle(control_->allowance(now).rate, now);
  if (rate_ != roce::Allowance::kUnlimited) paid_at_ = std::max(paid_at_, now) + time_at(8.0 * bytes, rate_);
}

void CongestionGate::request_sent(roce::Psn end, std::uint32_t bytes) {
  if (!tracks_) return;
  auto& sent = unanswered_.add_back();
  sent = {end, bytes};
  in_flight_ += bytes;
}

void CongestionGate::request_left(roce::Psn end, Duration now) {
  if (!tracks_) return;
  for (std::size_t i = 0; i < unanswered_.size(); ++i)
    if (unanswered_[i].left == Duration{}) {
      if (unanswered_[i].end == end) unanswered_[i].left = now;
      return;
    }
}

void CongestionGate::acknowledged(roce::Psn oldest, Duration now) {
  if (!tracks_) return;
  roce::AckFacts facts;
  for (; !unanswered_.empty() && !before(oldest, unanswered_.front().end); unanswered_.pop_front()) {
    const auto& sent = unanswered_.front();
    facts.bytes += sent.bytes;
    facts.rtt = sent.left == Duration{} ? Duration{} : now - sent.left;
  }
  if (facts.bytes == 0) return;
  in_flight_ -= facts.bytes;
  facts.in_flight = in_flight_;
  control_->acknowledged(facts, now);
}

}  // namespace rnicsim::nic
