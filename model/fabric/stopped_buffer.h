// SPDX-License-Identifier: Apache-2.0
// Pauses of a switch (IEEE 802.1Qbb), as input of the deadlock search.
#pragma once

#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::fabric {

// Input buffer (port, priority) whose sender is paused.
struct StoppedBuffer {
  std::uint32_t port = 0;
  std::uint8_t priority = 0;
  std::uint64_t bytes = 0;  // bytes held
  std::uint64_t xon = 0;    // number of bytes at which the pause ends
  Duration since{};         // start of the pause
};
// Bytes of an input buffer that wait in the queue of a paused output port.
struct PausedBytes {
  std::uint32_t from = 0;  // input port
  std::uint32_t to = 0;    // output port
  std::uint8_t priority = 0;
  std::uint64_t bytes = 0;
};

}  // namespace rnicsim::fabric
