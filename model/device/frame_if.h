// A frame port, as a SystemC interface: whatever raw Ethernet frames are handed to.
#pragma once

#include <cstddef>
#include <span>
#include <systemc>

namespace rnicsim::device {

class FrameIf : public virtual sc_core::sc_interface {
 public:
  // `frame`: from the destination's MAC to the last byte before the FCS; without preamble and FCS. It is the caller's:
  // the callee copies what it keeps. `last_bit`: in so long its last bit arrives. The callee does not wait.
  virtual void receive(std::span<const std::byte> frame, const sc_core::sc_time& last_bit) = 0;
};

}  // namespace rnicsim::device
