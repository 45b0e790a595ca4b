// For software threads inside the simulator, which share one environment: what its variables are to a program.
#pragma once

#include <cstdint>

struct ibv_context;

namespace rnicsim::verbs {

// Whether the QPs that are made from now on ring by BlueFlame where they can, or by plain doorbells only:
// RNICSIM_SHUT_UP_BF.
void use_blue_flame(ibv_context* context, bool use);

// The longest SEND that comes to the QPs that are made from now on in its completion; 0: none does. No more than the
// device can: RNICSIM_SCATTER_TO_CQE asks for that.
void use_inline_receive(ibv_context* context, std::uint32_t bytes);

}  // namespace rnicsim::verbs
