// SPDX-License-Identifier: Apache-2.0
// Chooses among equally short paths through a switch: a policy (model/base/policy.h). A frame with a single path and a
// multicast frame need no choice. Each policy has its own source in model/fabric/paths/.
//
// A choice may depend only on the frames that arrived at this switch, their arrival times, and the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "model/base/draw.h"
#include "model/base/frame.h"
#include "model/base/stats.h"
#include "model/base/units.h"

namespace rnicsim {

class PolicyParams;

namespace fabric {

// Queries that a policy may make of its switch.
class SwitchView {
 public:
  virtual Duration time() const = 0;
  virtual std::uint8_t priority_of(const Frame& frame) const = 0;
  // Bytes of one priority in a port's queue, including a frame whose last bit has not left.
  virtual std::uint64_t waiting_bytes(std::uint16_t port, std::uint8_t priority) const = 0;
  // Bytes of all priorities in a port's queues.
  virtual std::uint64_t waiting_bytes(std::uint16_t port) const = 0;

 protected:
  ~SwitchView() = default;
};

// Paths to one destination, by their first ports. Destinations with the same ports share a set.
struct Ways {
  std::span<const std::uint16_t> ports;  // at least two
  std::uint32_t set = 0;                 // number of the set within this switch
};

class PathChoice {
 public:
  // Unique for each switch and each seed of the run.
  struct Random {
    std::uint64_t seed;
    SmallGenerator generator;
  };

  // `params`: parameters registered under the name; nullptr for a policy without parameters.
  using Make = std::unique_ptr<PathChoice> (*)(const PolicyParams* params, const Random& random);

  virtual ~PathChoice() = default;

  // Index of the chosen path in `ways.ports`. The switch calls this once for each frame, in the order of arrival.
  virtual std::uint32_t choose(const Frame& frame, const Ways& ways, const SwitchView& view) = 0;
  // For a policy that tracks flows: number of times that a flow changed its path.
  virtual Counter changes() const { return 0; }
};

}  // namespace fabric
}  // namespace rnicsim
