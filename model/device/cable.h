// SPDX-License-Identifier: Apache-2.0
// A lossless cable between two frame ports, with a latency in each direction. The ports account for the bit rate.
#pragma once

#include <systemc>

#include "model/device/device.h"
#include "model/device/frame_if.h"

namespace rnicsim::device {

class Cable : public sc_core::sc_module {
 public:
  // `latency`: PHY, FEC and cable, one way.
  explicit Cable(sc_core::sc_module_name name, const sc_core::sc_time& latency = {90, sc_core::SC_NS})
      : sc_module(name), from_a_(latency), from_b_(latency) {}

  void connect(Device& a, Device& b) {
    a.frame_out(from_a_);
    b.frame_out(from_b_);
    from_a_.to = &b.frame_in;
    from_b_.to = &a.frame_in;
  }

 private:
  struct Way : FrameIf {
    explicit Way(const sc_core::sc_time& latency) : latency(latency) {}
    void receive(std::span<const std::byte> frame, const sc_core::sc_time& last_bit) override {
      (*to)->receive(frame, last_bit + latency);
    }
    const sc_core::sc_time latency;
    sc_core::sc_export<FrameIf>* to = nullptr;
  };

  Way from_a_;
  Way from_b_;
};

}  // namespace rnicsim::device
