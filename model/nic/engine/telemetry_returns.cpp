// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/telemetry_returns.h"

#include <algorithm>
#include <utility>

namespace rnicsim::nic {

void TelemetryReturns::came(const Telemetry& block, roce::Psn psn, Duration arrived) {
  if (!block.asks_for_delay()) {
    ports_ = block;
    return;
  }
  if (arrivals_.size() == kMostArrivals) arrivals_.erase(arrivals_.begin(), arrivals_.begin() + kMostArrivals / 2);
  arrivals_.push_back({psn, arrived});
}

std::optional<Telemetry> TelemetryReturns::take(const roce::Headers& answer, Duration now) {
  if (auto block = std::exchange(ports_, std::nullopt)) {
    block->give_back();
    return block;
  }
  const bool acknowledges = answer.aeth && (answer.aeth->syndrome & roce::Aeth::kClassMask) == roce::Aeth::kAck;
  if (!acknowledges) return std::nullopt;
  const auto is_answered = [&](const Arrival& arrival) { return !before(answer.bth.psn, arrival.psn); };
  const auto newest = std::find_if(arrivals_.rbegin(), arrivals_.rend(), is_answered);
  if (newest == arrivals_.rend()) return std::nullopt;
  auto block = Telemetry::delay_request();
  block.give_back(now - newest->at);
  std::erase_if(arrivals_, is_answered);
  return block;
}

}  // namespace rnicsim::nic
