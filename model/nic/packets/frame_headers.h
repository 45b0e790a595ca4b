// SPDX-License-Identifier: Apache-2.0
// The protocol headers of an Ethernet frame, for flow rules and receive-side scaling: each as the bytes of its fields,
// in network order. No field of a frame is trusted: a truncated header counts as absent, and the end by IP's length is
// at most the end of the frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/nic/personality/flows.h"

namespace rnicsim::nic {

class FrameHeaders {
 public:
  // `frame`: without FCS.
  explicit FrameHeaders(std::span<const std::byte> frame);

  // nullptr: the frame has no such header. `inner`: headers in a VXLAN, GRE or IP-in-IP tunnel.
  const FlowFields* find(FlowHeader header, bool inner) const {
    const auto& layer = inner ? inner_ : outer_;
    return (layer.present >> static_cast<unsigned>(header) & 1) != 0 ? &layer.fields[static_cast<std::size_t>(header)]
                                                                     : nullptr;
  }

 private:
  struct Layer {
    std::uint16_t present = 0;  // a bit for each header
    std::array<FlowFields, kFlowHeaders> fields;
  };
  struct Reader;

  Layer outer_;
  Layer inner_;
};

}  // namespace rnicsim::nic
