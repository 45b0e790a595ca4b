// SPDX-License-Identifier: Apache-2.0
// A message delivered to a program, as shown by a receive completion and memory, or as implied by the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/replay/capture/wire_capture.h"

namespace rnicsim::sim::replay {

struct Delivery {
  std::uint32_t frame = 0;  // frame of the message's last packet
  bool is_write = false;
  std::optional<std::uint32_t> immediate{};
  std::optional<std::uint32_t> invalidate{};
  std::optional<std::uint32_t> source{};  // datagram: QPN of the sender
  roce::Reth target{};                    // only for a WRITE
  std::vector<std::byte> bytes{};         // datagram: begins with the GRH

  bool completes_receive() const { return !is_write || immediate.has_value(); }
};

}  // namespace rnicsim::sim::replay
