// A NIC's parameters from its profile alone: what librnicsim and the Python module load.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "model/nic/nic_params.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim {

// `profile`: a TOML file such as the shipped cx5-100g.toml (a base that it names lies beside it); empty: the defaults.
// What it says of the host and the cable counts for nothing here, but for nic.pcie of the host that it names, whose
// profile lies in ../hosts. Then each "nic.key=value" of `sets`; a later one wins.
// ConfigError, whose text says what is wrong and where: a file that cannot be read, an unknown key, a value that does
// not fit, values that cannot stand together.
nic::NicParams load_nic_profile(const std::filesystem::path& profile, std::span<const std::string> sets = {});

}  // namespace rnicsim::sim
