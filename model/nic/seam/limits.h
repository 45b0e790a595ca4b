// SPDX-License-Identifier: Apache-2.0
// Limits that the QP engine, the blocks around it and their parameters share.
#pragma once

#include <cstdint>

namespace rnicsim::nic {

inline constexpr std::uint32_t kMostUnits = 64;  // transmit units, or receive units, of a NIC

}  // namespace rnicsim::nic
