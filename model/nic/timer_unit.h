// The timers of queue pairs, kept lazily: a deadline a timer, and at most one event of it on its way, which looks at the
// deadline when it comes.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "model/base/event_queue.h"
#include "model/base/stream.h"
#include "model/nic/qp_engine.h"

namespace rnicsim::nic {

struct TimerExpired {
  Qpn qpn;
  std::uint32_t kind;
};

class TimerUnit : public sc_core::sc_module {
 public:
  explicit TimerUnit(sc_core::sc_module_name name);

  Output<TimerExpired> expired;

  void arm(const TimerArm& request);
  bool armed(Qpn qpn, std::uint32_t kind) const;
  void reset();

 private:
  struct Timer {
    std::optional<Duration> deadline;
    std::optional<Duration> event;     // when the earliest event of it comes
  };
  static std::uint64_t key(Qpn qpn, std::uint32_t kind) { return std::uint64_t{kind} << 32 | qpn.value; }
  void look();

  EventQueue<std::uint64_t> queue_{"queue"};
  std::unordered_map<std::uint64_t, Timer> timers_;
};

}  // namespace rnicsim::nic
