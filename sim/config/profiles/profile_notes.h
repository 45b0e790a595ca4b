// SPDX-License-Identifier: Apache-2.0
// Notes of a profile beside its parameters: whether a NIC's values rest on a measurement.
#pragma once

#include <string>

namespace rnicsim::sim {

// True: the NIC's profile or one of its bases says `extrapolated = true` (the last note counts): no measurement of such
// a NIC was found. `nic`: a name or a file as for --nic. A file that cannot be read gives false.
bool is_extrapolated(const std::string& nic);
// Name of a NIC for display: "cx7-400g (extrapolated)", "cx5-100g".
std::string nic_text(const std::string& nic);

}  // namespace rnicsim::sim
