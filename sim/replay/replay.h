// SPDX-License-Identifier: Apache-2.0
// `rnicsim replay --wire`: replays a capture with our NIC in the place of a real one. The peers' packets are fed to our
// responder and receiver, the implied work requests to our requester. The packets and messages of our NIC are compared
// with those on the wire. Our communication manager replaces the real one in the same way (docs/replay.md).
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/nic/seam/qp_engine.h"
#include "sim/engine_choice.h"
#include "sim/replay/capture/capture_file.h"
#include "sim/replay/capture/wire_capture.h"
#include "sim/replay/cm/cm_traffic.h"
#include "sim/replay/comparer.h"
#include "sim/replay/environment.h"
#include "sim/replay/responder_driver.h"

namespace rnicsim::sim::replay {

struct Replay {
  std::string engine = EngineParams{}.kind;
  WireCapture capture;
  Environment environment;              // points into the capture
  std::vector<Comparison> comparisons;  // answers of each QP
  std::vector<Comparison> deliveries;   // messages delivered to each QP
  std::vector<Comparison> requests;     // of each requester, with completions and timers
  CmTraffic management;
  Comparison managed;              // management messages that the address sent
  std::vector<Difference> strays;  // answers of the real NIC that belong to no QP
  MemoryUse memory_use;

  std::uint64_t compared() const;  // packets of the real NIC that were compared
  std::uint64_t differences() const;
  EquivalenceCounts equivalences() const;
};

// `engine` must be new, with no outputs bound. `made_by`: a mismatch there ends the replay (EngineMismatch).
// ConfigError: nothing to replay.
Replay replay_frames(std::span<const CapturedFrame> frames, const roce::Gid& address, nic::QpEngine& engine,
                     const Engines* made_by = nullptr, Abilities abilities = {});

}  // namespace rnicsim::sim::replay
