// A cable between two ports: a latency each way. The ports account for the bit rate.
#pragma once

#include <array>

#include "model/base/frame.h"
#include "model/base/kernel.h"
#include "model/base/params.h"
#include "model/base/stream.h"

namespace rnicsim::fabric {

using namespace rnicsim::literals;

struct LinkParams {
  Duration latency = 90_ns;

  void describe(ParamVisitor& visit) {
    // A fabric can be cut over processes at any link, so none is instantaneous.
    visit.param("latency", latency, "PHY, FEC and cable, one way; spec/timing.md, cx5-100g", {1'000, 1e12});
  }
};

class Link : public sc_core::sc_module {
 public:
  static constexpr std::size_t kEnds = 2;

  Link(sc_core::sc_module_name name, const LinkParams& params) : sc_module(name), params_(params) {}

  // A frame given to one end as its last bit leaves comes out of the other at once, with the time until that bit arrives:
  // the receiver waits for it anyway.
  void send(std::size_t end, Frame&& frame) { out_[kEnds - 1 - end](std::move(frame), params_.latency); }
  Output<Frame, Duration>& out(std::size_t end) { return out_[end]; }

 private:
  const LinkParams params_;
  std::array<Output<Frame, Duration>, kEnds> out_;
};

}  // namespace rnicsim::fabric
