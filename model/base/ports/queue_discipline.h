// SPDX-License-Identifier: Apache-2.0
// Chooses the queue of a port that sends next, among those whose first frame may leave now: a policy
// (model/base/policy.h). Control frames leave before all queues. Each discipline is a source file in
// model/base/scheduling/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "model/base/ports/priority_map.h"

namespace rnicsim {

class PolicyParams;

class QueueDiscipline {
 public:
  // The queues, one a priority, that may send.
  struct Ready {
    std::uint32_t queues = 0;                        // a bit each; at least one bit is set
    std::array<std::uint32_t, kPriorities> bytes{};  // length of the first frame of each queue
  };

  // `params`: the parameters that were registered with the name; nullptr for a discipline without parameters. Returns
  // nullptr for strict priority, which TransmitPort implements itself.
  using Make = std::unique_ptr<QueueDiscipline> (*)(const PolicyParams* params);

  virtual ~QueueDiscipline() = default;

  // Returns one of the ready queues. The port may call choose() again, with other queues, until the first bit of the
  // frame is sent: only the last answer counts.
  virtual std::uint8_t choose(const Ready& ready) = 0;
  // The frame of the last answer has left. `empty`: its queue holds no other frame.
  virtual void left(bool empty) = 0;
  // All waiting frames of the queue were dropped.
  virtual void emptied(std::uint8_t queue) = 0;
  // Returns to the initial state.
  virtual void reset() = 0;
};

}  // namespace rnicsim
