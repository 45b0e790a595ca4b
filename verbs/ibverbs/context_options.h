// SPDX-License-Identifier: Apache-2.0
// Settings for software threads inside the simulator. The threads share one environment, so they cannot use the
// variables that a program uses.
#pragma once

#include <cstdint>

struct ibv_context;

namespace rnicsim::verbs {

// QPs created from now on use BlueFlame where possible, or plain doorbells only (RNICSIM_SHUT_UP_BF).
void use_blue_flame(ibv_context* context, bool use);

// Longest SEND in bytes that QPs created from now on may receive in its CQE; 0: none. Limited to the device's maximum,
// which RNICSIM_SCATTER_TO_CQE selects.
void use_inline_receive(ibv_context* context, std::uint32_t bytes);

}  // namespace rnicsim::verbs
