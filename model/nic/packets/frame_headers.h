// The protocol headers of an Ethernet frame, as far as flow rules and receive-side scaling ask for them: each as the
// bytes of its fields, in network order. Nothing in a frame is trusted: a header that is cut short is not there, and
// what IP's length says ends no later than the frame does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/nic/personality/flows.h"

namespace rnicsim::nic {

class FrameHeaders {
 public:
  // Of a frame without FCS.
  explicit FrameHeaders(std::span<const std::byte> frame);

  // nullptr: the frame has none. Inner ones lie in a VXLAN, GRE or IP-in-IP tunnel.
  const FlowFields* find(FlowHeader header, bool inner) const {
    const auto& layer = inner ? inner_ : outer_;
    return (layer.present >> static_cast<unsigned>(header) & 1) != 0 ? &layer.fields[static_cast<std::size_t>(header)]
                                                                     : nullptr;
  }

 private:
  struct Layer {
    std::uint16_t present = 0;             // a bit each
    std::array<FlowFields, kFlowHeaders> fields;
  };
  struct Reader;

  Layer outer_;
  Layer inner_;
};

}  // namespace rnicsim::nic
