// SPDX-License-Identifier: Apache-2.0
// Finds settings without effect: parameters of a policy (a congestion control, a scheduler, a path choice) that is not
// selected, and parameters that another parameter makes ineffective (ParamVisitor::idle). Examples:
// nic.congestion.dcqcn.rpg_g while nic.congestion.control is "swift", switch.ecn.kmin while switch.ecn.priorities is 0.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/config/toml_file.h"

namespace rnicsim::sim {

class ParamList;

// Returns one sentence for the settings of a group with the same reason. `list`: the configuration's parameters.
// `standard`: the parameters of a default configuration. `settings`: the user's settings, in their order.
// A file's setting counts only if its value is not the default, because a resolved configuration has every parameter.
// There is no sentence if the setting has an effect in a named profile that inherits the parameter ([nics.NAME]
// inherits from [nic]).
std::vector<std::string> settings_without_effect(const ParamList& list, const ParamList& standard,
                                                 std::span<const Setting> settings);

}  // namespace rnicsim::sim
