// SPDX-License-Identifier: Apache-2.0
// Pending signals, as Linux keeps them: a standard signal is pending once at most, real-time signals queue.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {

using SignalSet = std::uint64_t;  // bit 0 is signal 1
inline constexpr std::uint32_t kMostSignal = 64;
inline constexpr std::uint32_t kFirstRealTime = 32;  // as the kernel counts; the C library keeps two for itself

constexpr SignalSet set_of(std::uint32_t number) { return SignalSet{1} << (number - 1); }
// Signals that stop a process: SIGSTOP always, the others by default.
inline constexpr SignalSet kStops = set_of(SIGSTOP) | set_of(SIGTSTP) | set_of(SIGTTIN) | set_of(SIGTTOU);

class PendingSignals {
 public:
  // False: the queue of real-time signals is full.
  bool push(const abi::SignalRecord& signal);
  void drop(SignalSet set);
  // Takes a signal of the set: the lowest number first, and of one number the oldest.
  std::optional<abi::SignalRecord> take(SignalSet set);
  SignalSet set() const;
  bool empty() const { return signals_.empty(); }

 private:
  std::vector<abi::SignalRecord> signals_;  // by number, then by arrival
};

}  // namespace rnicsim::sim
