// Congestion control: when a queue pair may send its next request, or packet of a READ's response; acknowledgements it
// does not hold back. Asked by who schedules (model/nic/engine/engine_shell), and told of what was sent. It has no
// clock. A control is a source of its own that registers itself (model/base/policy.h), chosen by name in a NIC's
// parameters.
#pragma once

#include <cstdint>
#include <memory>

#include "model/base/units.h"
#include "model/roce/qp_core.h"

namespace rnicsim::roce {

class CongestionControl {
 public:
  using Make = std::unique_ptr<CongestionControl> (*)();

  virtual ~CongestionControl() = default;
  virtual void open(Slot slot) = 0;                       // a new queue pair, or one that was reset
  virtual Duration not_before(Slot slot) = 0;
  virtual void sent(Slot slot, std::uint32_t payload, Duration now) = 0;
};

}  // namespace rnicsim::roce
