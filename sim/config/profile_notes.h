// What the profiles say of themselves, beside their parameters: whether a NIC's rests on a measurement.
#pragma once

#include <string>

namespace rnicsim::sim {

// `extrapolated = true` of a NIC's profile, or of one of its bases, the last one counting: no measurement of such a NIC
// was found. A name or a file as --nic has it; of one that cannot be read, false.
bool is_extrapolated(const std::string& nic);
// "cx7-400g (extrapolated)", "cx5-100g"
std::string nic_text(const std::string& nic);

}  // namespace rnicsim::sim
