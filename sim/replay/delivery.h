// Messages that reach a program: what a receiver's completion and memory say of them, and what the wire implies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/replay/capture/wire_capture.h"

namespace rnicsim::sim::replay {

struct Delivery {
  std::uint32_t frame = 0;  // of its last packet
  bool is_write = false;
  std::optional<std::uint32_t> immediate{};
  std::optional<std::uint32_t> invalidate{};
  std::optional<std::uint32_t> source{};  // QPN of a datagram's sender
  roce::Reth target{};                    // of a WRITE
  std::vector<std::byte> bytes{};         // of a datagram: its GRH first

  bool completes_receive() const { return !is_write || immediate.has_value(); }
};

}  // namespace rnicsim::sim::replay
