// Which answers of an address belong to which of its queue pairs: an answer names the peer's QP only.
#pragma once

#include <span>

#include "sim/replay/environment.h"

namespace rnicsim::sim::replay {

// Fills peer_qpn, path_mtu, Request::packets and answers of each QP, and adds what is left to the strays. Streams of
// answers go to the QP whose requests explain most of their PSNs.
void pair_answers(Environment& environment, std::span<const WirePacket* const> answers,
                  std::span<const WirePacket* const> own_requests);

}  // namespace rnicsim::sim::replay
