// SPDX-License-Identifier: Apache-2.0
// The timers of queue pairs.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/lazy_timers.h"
#include "model/base/stream.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

struct TimerExpired {
  Qpn qpn;
  std::uint32_t kind;
};

class TimerUnit : public sc_core::sc_module {
 public:
  explicit TimerUnit(sc_core::sc_module_name name);

  Output<TimerExpired> expired;

  [[gnu::flatten]] void arm(const TimerArm& request);
  bool armed(Qpn qpn, std::uint32_t kind) const;
  void reset();

 private:
  struct Look {
    Qpn qpn;
    std::uint32_t kind = 0;
  };
  LazyTimer& timer(Qpn qpn, std::uint32_t kind);
  void look();

  LazyTimers<Look> queue_{[this] { look(); }};
  std::vector<std::vector<LazyTimer>> timers_;  // by kind, then by QPN: both are small numbers
};

}  // namespace rnicsim::nic
