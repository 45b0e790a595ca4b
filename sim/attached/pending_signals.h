// Signals that wait until a thread takes them, as Linux keeps them: one that waits already does not wait twice, but for
// the real-time ones, which queue.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {

using SignalSet = std::uint64_t;  // bit 0 is signal 1
inline constexpr std::uint32_t kMostSignal = 64;
inline constexpr std::uint32_t kFirstRealTime = 32;  // as the kernel counts

constexpr SignalSet set_of(std::uint32_t number) { return SignalSet{1} << (number - 1); }
// They stop a process, whether it wants or not; or by default.
inline constexpr SignalSet kStops = set_of(SIGSTOP) | set_of(SIGTSTP) | set_of(SIGTTIN) | set_of(SIGTTOU);

class PendingSignals {
 public:
  // False: there is no room for one more real-time signal.
  bool push(const abi::SignalRecord& signal);
  void drop(SignalSet set);
  // Of the set; the lowest number first, of one number the first that came.
  std::optional<abi::SignalRecord> take(SignalSet set);
  SignalSet set() const;
  bool empty() const { return signals_.empty(); }

 private:
  std::vector<abi::SignalRecord> signals_;  // in order
};

}  // namespace rnicsim::sim
