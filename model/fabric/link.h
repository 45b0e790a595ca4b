// A cable between two ports: a latency each way. The ports account for the bit rate.
#pragma once

#include <array>

#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/frame.h"
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

  Link(sc_core::sc_module_name name, const LinkParams& params);

  // A frame given to one end comes out of the other.
  void send(std::size_t end, Frame frame);
  Output<Frame>& out(std::size_t end) { return out_[end]; }

 private:
  void deliver_due();

  const LinkParams params_;
  std::array<Output<Frame>, kEnds> out_;
  std::array<Fifo<Frame>, kEnds> travelling_;  // towards that end
  EventQueue<std::size_t> queue_{"queue"};
};

}  // namespace rnicsim::fabric
