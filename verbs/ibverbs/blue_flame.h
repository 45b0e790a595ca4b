// For software threads inside the simulator, which share one environment: what RNICSIM_SHUT_UP_BF is to a program.
#pragma once

struct ibv_context;

namespace rnicsim::verbs {

// Whether the QPs that are made from now on ring by BlueFlame where they can, or by plain doorbells only.
void use_blue_flame(ibv_context* context, bool use);

}  // namespace rnicsim::verbs
