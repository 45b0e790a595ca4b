// SPDX-License-Identifier: Apache-2.0
// Completion queue entries of an engine.
#pragma once

#include <cstdint>

#include "model/nic/seam/qp_engine.h"
#include "model/roce/headers.h"

namespace rnicsim::nic {

// `index`: first block of the WQE; `length`: of the message.
CqeWrite send_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, SendOpcode opcode, std::uint32_t length, roce::Status status);
// `last`: headers of the message's last packet.
CqeWrite receive_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, const roce::Headers& last, std::uint32_t length);
CqeWrite receive_error_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, roce::Status status);

// Names the XRC SRQ of the receive.
inline void name_queue(CqeWrite& write, std::uint32_t srqn, std::uint64_t life) {
  write.cqe.xrc = true;
  write.cqe.source_qpn = srqn;
  write.life = life;
}

}  // namespace rnicsim::nic
