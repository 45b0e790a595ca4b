// SPDX-License-Identifier: Apache-2.0
// Results of `rnicsim calibrate --fit` as text, JSON and TOML.
#pragma once

#include <string>

#include "sim/calibrate/fit.h"
#include "sim/results/json.h"

namespace rnicsim::sim::calibrate {

std::string fit_text(const NicRows& rows, const Fit& fit);
Json fit_json(const NicRows& rows, const Fit& fit);
// The changed estimates, as a NIC's profile whose base is the fitted profile.
std::string fit_toml(const NicRows& rows, const Fit& fit);

}  // namespace rnicsim::sim::calibrate
