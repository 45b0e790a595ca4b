// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of the processing units.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/params.h"
#include "model/base/stats.h"
#include "model/nic/seam/limits.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct ProcessingUnitsParams {
  std::uint32_t transmit_units = 8;
  std::uint32_t receive_units = 8;
  Duration write = 88_ns;
  Duration send = 88_ns;
  Duration read = 128_ns;
  Duration atomic = 128_ns;
  Duration read_response = 64_ns;
  std::uint32_t payload_reads = 256;
  ByteCount read_ahead{6656};
  ByteCount read_piece{1024};
  Duration acknowledge = 10_ns;
  Duration next_packet = 20_ns;
  Duration receive_request = 64_ns;
  Duration receive_atomic = 128_ns;
  Duration receive_response = 64_ns;
  Duration receive_next = 20_ns;
  Duration line{};

  void describe(ParamVisitor& visit);
};

struct ProcessingUnitsCounters {
  static constexpr std::uint32_t kMostUnits = nic::kMostUnits;

  std::uint32_t transmit_units = 1;
  std::uint32_t receive_units = 1;
  Counter transmit_operations = 0;
  Counter receive_packets = 0;
  std::array<Counter, kMostUnits> transmit_busy_ps{};  // by unit
  std::array<Counter, kMostUnits> receive_busy_ps{};
  Counter receive_waits = 0;
  Counter receive_wait_ps = 0;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic
