// Settings that have no effect: parameters of a policy (a congestion control, a scheduler, a path choice) beside the
// choice of another one. So nic.congestion.dcqcn.rpg_g has none while nic.congestion.control is "swift".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/config/toml_file.h"

namespace rnicsim::sim {

struct Config;

// `settings`: those of the user, in the order in which they came. Of each policy's group one sentence.
// A file's setting counts only if it is not the default: a resolved configuration says every parameter.
// No sentence where a named profile that may inherit the parameter ([nics.NAME] of [nic]) has chosen the policy.
std::vector<std::string> settings_without_effect(Config& config, std::span<const Setting> settings);

}  // namespace rnicsim::sim
