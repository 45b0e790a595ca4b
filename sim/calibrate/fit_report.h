// What `rnicsim calibrate --fit` says.
#pragma once

#include <string>

#include "sim/calibrate/fit.h"
#include "sim/json.h"

namespace rnicsim::sim::calibrate {

std::string fit_text(const NicRows& rows, const Fit& fit);
Json fit_json(const NicRows& rows, const Fit& fit);
// What the fit moved, as a NIC's profile that has the fitted one as its base.
std::string fit_toml(const NicRows& rows, const Fit& fit);

}  // namespace rnicsim::sim::calibrate
