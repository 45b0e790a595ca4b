// Which of several equally short ways a frame takes through a switch: a policy (model/base/policy.h). A frame with one
// way and a frame for a group take no choice. Each policy is a source of its own in model/fabric/paths/.
//
// A choice depends on nothing but the frames that came to this switch, the times when they came, and the seed.
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

// What a policy may ask of its switch.
class SwitchView {
 public:
  virtual Duration time() const = 0;
  virtual std::uint8_t priority_of(const Frame& frame) const = 0;
  // Bytes of one priority in the queue of a port; a frame counts until its last bit has left.
  virtual std::uint64_t waiting_bytes(std::uint16_t port, std::uint8_t priority) const = 0;
  // Bytes of all priorities in the queues of a port.
  virtual std::uint64_t waiting_bytes(std::uint16_t port) const = 0;

 protected:
  ~SwitchView() = default;
};

// The ways to one destination, by the ports where they begin. Destinations with the same ports have one set.
struct Ways {
  std::span<const std::uint16_t> ports;  // at least two
  std::uint32_t set = 0;                 // the number of the set among those of this switch
};

class PathChoice {
 public:
  // Both are different for each switch and for each seed of the run.
  struct Random {
    std::uint64_t seed;
    SmallGenerator generator;
  };

  // `params`: what was registered with the name; nullptr for a policy without parameters.
  using Make = std::unique_ptr<PathChoice> (*)(const PolicyParams* params, const Random& random);

  virtual ~PathChoice() = default;

  // The chosen way's place in `ways.ports`. The switch calls this once for each frame, in the order in which the frames
  // come, and the frame takes that way.
  virtual std::uint32_t choose(const Frame& frame, const Ways& ways, const SwitchView& view) = 0;
  // How often a flow went on by another way, of a policy that follows flows.
  virtual Counter changes() const { return 0; }
};

}  // namespace fabric
}  // namespace rnicsim
