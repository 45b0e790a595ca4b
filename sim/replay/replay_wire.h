// SPDX-License-Identifier: Apache-2.0
// The command `rnicsim replay --wire`.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "sim/engine_choice.h"
#include "sim/replay/replay.h"

namespace rnicsim::sim::replay {

struct ReplayOptions {
  std::filesystem::path wire;
  std::string as;    // address whose NIC is replaced
  std::string json;  // file; empty: none
  EngineOptions engine;
};

// Replays with a new engine of the given kind; else as replay_frames().
Replay replay_as(std::span<const CapturedFrame> frames, const roce::Gid& address, const EngineOptions& options);

// Prints the report. Returns 0: no difference, 1: differences. ConfigError, EngineMismatch.
int replay_wire(const ReplayOptions& options);

}  // namespace rnicsim::sim::replay
