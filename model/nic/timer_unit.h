// The timers of queue pairs, kept lazily: a deadline a timer, and at most one event of it on its way, which looks at the
// deadline when it comes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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
  struct Look {
    Qpn qpn;
    std::uint32_t kind = 0;
  };
  Timer& timer(Qpn qpn, std::uint32_t kind);
  void look();

  EventQueue<Look> queue_{"queue"};
  std::vector<std::vector<Timer>> timers_;  // by kind, then by QP: both are small numbers
};

}  // namespace rnicsim::nic
