// SPDX-License-Identifier: Apache-2.0
// Warnings about a configuration's priority flow control (PFC), one sentence each: pauses that the other end of a cable
// does not obey or never asks for, and headroom too small for the frames that arrive until a pause takes effect.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim {

struct Config;

// A long list is cut; its last sentence then gives the number of further warnings.
std::vector<std::string> pause_warnings(const Config& config);

}  // namespace rnicsim::sim
