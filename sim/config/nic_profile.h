// SPDX-License-Identifier: Apache-2.0
// Loads a NIC's parameters from its profile alone, for librnicsim and the Python module.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "model/nic/nic_params.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim {

// `profile`: a TOML file such as the shipped cx5-100g.toml, with its base in the same folder; empty: the defaults. Its
// settings of host and cable are ignored, except nic.pcie of the host that it names, whose profile is in ../hosts. Then
// applies each "nic.key=value" of `sets`; a later one wins. ConfigError: a file cannot be read, a key is unknown, a
// value does not fit, or values contradict each other.
nic::NicParams load_nic_profile(const std::filesystem::path& profile, std::span<const std::string> sets = {});

}  // namespace rnicsim::sim
