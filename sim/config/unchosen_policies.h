// SPDX-License-Identifier: Apache-2.0
// Finds settings without effect: parameters of a policy (a congestion control, a scheduler, a path choice) that is not
// selected. Example: nic.congestion.dcqcn.rpg_g has no effect while nic.congestion.control is "swift".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/config/toml_file.h"

namespace rnicsim::sim {

class ParamList;

// Returns one sentence for the group of each such policy. `list`: the configuration's parameters. `standard`: the
// parameters of a default configuration. `settings`: the user's settings, in their order.
// A file's setting counts only if its value is not the default, because a resolved configuration has every parameter.
// There is no sentence if a named profile that inherits the parameter ([nics.NAME] inherits from [nic]) selects the
// policy.
std::vector<std::string> settings_without_effect(const ParamList& list, const ParamList& standard,
                                                 std::span<const Setting> settings);

}  // namespace rnicsim::sim
