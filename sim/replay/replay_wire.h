// SPDX-License-Identifier: Apache-2.0
// The command `rnicsim replay --wire`.
#pragma once

#include <filesystem>
#include <string>

#include "sim/engine_choice.h"

namespace rnicsim::sim::replay {

struct ReplayOptions {
  std::filesystem::path wire;
  std::string as;  // address whose NIC is replaced
  std::string json;  // file; empty: none
  EngineOptions engine;
};

// Prints the report. Returns 0: no difference, 1: differences. ConfigError, EngineMismatch.
int replay_wire(const ReplayOptions& options);

}  // namespace rnicsim::sim::replay
