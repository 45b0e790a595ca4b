// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/pending_signals.h"

#include <algorithm>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMost = 1024;

}  // namespace

bool PendingSignals::push(const abi::SignalRecord& signal) {
  const bool queues = signal.number >= kFirstRealTime;
  if (!queues && (set() & set_of(signal.number)) != 0) return true;
  if (queues && signals_.size() >= kMost) return false;
  const auto place = std::ranges::upper_bound(signals_, signal.number, {}, &abi::SignalRecord::number);
  signals_.insert(place, signal);
  return true;
}

std::optional<abi::SignalRecord> PendingSignals::take(SignalSet set) {
  const auto found =
      std::ranges::find_if(signals_, [&](const auto& signal) { return (set & set_of(signal.number)) != 0; });
  if (found == signals_.end()) return std::nullopt;
  const abi::SignalRecord taken = *found;
  signals_.erase(found);
  return taken;
}

void PendingSignals::drop(SignalSet set) {
  std::erase_if(signals_, [&](const auto& signal) { return (set & set_of(signal.number)) != 0; });
}

SignalSet PendingSignals::set() const {
  SignalSet all = 0;
  for (const auto& signal : signals_) all |= set_of(signal.number);
  return all;
}

}  // namespace rnicsim::sim
