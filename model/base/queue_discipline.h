// Which queue of a port sends next, among those whose first frame may leave now: a policy (model/base/policy.h).
// Control frames are not part of this: they leave first. Each discipline is a source of its own in
// model/base/scheduling/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "model/base/priority_map.h"

namespace rnicsim {

class PolicyParams;

class QueueDiscipline {
 public:
  // The queues, one a priority, that may send.
  struct Ready {
    std::uint32_t queues = 0;                        // a bit each, never 0
    std::array<std::uint32_t, kPriorities> bytes{};  // of the first frame of each
  };

  // `params`: what was registered with the name; nullptr for a discipline without parameters. Returns nullptr for
  // strict priority, which TransmitPort does by itself.
  using Make = std::unique_ptr<QueueDiscipline> (*)(const PolicyParams* params);

  virtual ~QueueDiscipline() = default;

  // One of the queues that are ready. The port asks again, perhaps with other queues, until the frame's first bit is
  // out: only the last answer counts.
  virtual std::uint8_t choose(const Ready& ready) = 0;
  // The frame of the last answer has left. `empty`: nothing else waits in its queue.
  virtual void left(bool empty) = 0;
  // All that waited in the queue was dropped.
  virtual void emptied(std::uint8_t queue) = 0;
  // As at the beginning.
  virtual void reset() = 0;
};

}  // namespace rnicsim
