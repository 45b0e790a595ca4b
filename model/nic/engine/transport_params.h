// SPDX-License-Identifier: Apache-2.0
// Parameters of a queue pair's transport: recovery from lost packets, and out-of-order packets.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/params.h"
#include "model/roce/loss_recovery.h"

namespace rnicsim::nic {

struct TransportParams {
  static constexpr const char* kRecoveryWords[] = {"go_back_n", "go_back_0", "selective"};
  static constexpr const char* kRethWords[] = {"first", "each"};

  std::string recovery{kRecoveryWords[0]};
  std::uint32_t reorder_window = 0;
  ByteCount reorder_buffer{65'536};
  bool place_early = true;
  std::uint32_t nak_gap = 0;
  std::uint32_t most_in_flight = 0;
  bool read_acks = false;
  std::string reth{kRethWords[0]};
  Duration rto_low{};
  Duration rto_high{};
  std::uint32_t rto_low_packets = 3;

  roce::LossRecovery loss_recovery() const;
  void describe(ParamVisitor& visit);
};

}  // namespace rnicsim::nic
