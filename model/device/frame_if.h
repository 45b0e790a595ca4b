// SPDX-License-Identifier: Apache-2.0
// A frame port as a SystemC interface: a receiver of raw Ethernet frames.
#pragma once

#include <cstddef>
#include <span>
#include <systemc>

namespace rnicsim::device {

class FrameIf : public virtual sc_core::sc_interface {
 public:
  // `frame`: from the destination MAC to the last byte before the FCS, without preamble and FCS. The caller owns the
  // bytes; the callee copies what it keeps. `last_bit`: time until the last bit arrives. The callee must not wait.
  virtual void receive(std::span<const std::byte> frame, const sc_core::sc_time& last_bit) = 0;
};

}  // namespace rnicsim::device
