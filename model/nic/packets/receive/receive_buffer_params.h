// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the receive buffer.
#pragma once

#include <cstdint>

#include "model/base/params.h"
#include "model/base/stats.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct ReceiveBufferParams {
  ByteCount size = 512_KiB;
  std::uint32_t pfc = 0;
  ByteCount xoff = 192_KiB;
  ByteCount xon = 128_KiB;
  std::uint32_t quanta = 65535;

  void describe(ParamVisitor& visit);
};

struct ReceiveBufferCounters {
  Counter rx_discards_phy = 0;
  Counter tx_pause = 0;
  Counter most_bytes = 0;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic
