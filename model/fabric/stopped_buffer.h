// Pauses of a switch (IEEE 802.1Qbb), as the search for deadlocks reads them.
#pragma once

#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::fabric {

// A switch's buffer of an input port and priority, for which a pause was asked.
struct StoppedBuffer {
  std::uint32_t port = 0;
  std::uint8_t priority = 0;
  std::uint64_t bytes = 0;                 // that it holds
  std::uint64_t xon = 0;                   // down to which the pause lasts
  Duration since{};                        // of the pause
};
// Bytes of that buffer in the queue of an output port that is paused.
struct PausedBytes {
  std::uint32_t from = 0;                  // input port
  std::uint32_t to = 0;                    // output port
  std::uint8_t priority = 0;
  std::uint64_t bytes = 0;
};

}  // namespace rnicsim::fabric
