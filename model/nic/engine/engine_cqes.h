// Completion queue entries as any engine builds them.
#pragma once

#include <cstdint>

#include "model/nic/seam/qp_engine.h"
#include "model/roce/headers.h"

namespace rnicsim::nic {

// `index` is the WQE's first block; `length` the message's.
CqeWrite send_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, SendOpcode opcode, std::uint32_t length,
                  roce::Status status);
// `last`: of the message's last packet.
CqeWrite receive_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, const roce::Headers& last, std::uint32_t length);
CqeWrite receive_error_cqe(Qpn qpn, Cqn cqn, std::uint16_t index, roce::Status status);

// Of an XRC SRQ.
inline void name_queue(CqeWrite& write, std::uint32_t srqn, std::uint64_t life) {
  write.cqe.xrc = true;
  write.cqe.source_qpn = srqn;
  write.life = life;
}

}  // namespace rnicsim::nic
