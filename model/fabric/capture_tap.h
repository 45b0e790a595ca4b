// Writes the frames of trace points to a capture file.
#pragma once

#include <functional>
#include <string>

#include "model/base/kernel.h"
#include "model/base/trace.h"
#include "model/fabric/fault_injector.h"
#include "model/fabric/pcapng.h"

namespace rnicsim::fabric {

class CaptureTap {
 public:
  // `writer` outlives the simulation.
  explicit CaptureTap(PcapngWriter& writer) : writer_(writer) {}

  // An interface of the capture; it sees the frames of the points given to watch().
  std::uint32_t add_interface(const std::string& name) { return writer_.add_interface(name); }
  void watch(std::uint32_t interface, trace::Point<Frame>& point) {
    point.subscribe([this, interface](const Frame& frame) { writer_.write(interface, now(), frame); });
  }
  // Frames that enter a cable with fault rules: those that suffer get a comment.
  void watch(std::uint32_t interface, trace::Point<FaultTrace>& point,
             std::function<std::string(const Fault&)> comment) {
    point.subscribe([this, interface, comment = std::move(comment)](const FaultTrace& entered) {
      writer_.write(interface, now(), entered.frame, entered.fault ? comment(*entered.fault) : "");
    });
  }

 private:
  PcapngWriter& writer_;
};

}  // namespace rnicsim::fabric
