// `rnicsim replay --wire`: our NIC in the place of a real one. What its peers sent goes into our responder and
// receiver, what it posted into our requester; what our NIC sends and delivers is compared with what the wire shows.
// Our communication manager takes the place of the real one, too (docs/replay.md).
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/nic/seam/qp_engine.h"
#include "sim/engine_choice.h"
#include "sim/replay/capture_file.h"
#include "sim/replay/cm_traffic.h"
#include "sim/replay/comparer.h"
#include "sim/replay/environment.h"
#include "sim/replay/responder_driver.h"
#include "sim/replay/wire_capture.h"

namespace rnicsim::sim::replay {

struct ReplayOptions {
  std::filesystem::path wire;
  std::string as;  // the address whose NIC we are
  std::string json;  // a file; empty: none
  EngineOptions engine;
};

struct Replay {
  std::string engine = EngineParams{}.kind;
  WireCapture capture;
  Environment environment;              // points into the capture
  std::vector<Comparison> comparisons;  // of each QP's answers
  std::vector<Comparison> deliveries;   // of each QP
  std::vector<Comparison> requests;     // of each requester, with its completions and timers
  CmTraffic management;
  Comparison managed;                   // what the address sent of it
  std::vector<Difference> strays;       // answers of the real NIC that belong to no QP
  MemoryUse memory_use;

  std::uint64_t compared() const;  // packets of the real NIC
  std::uint64_t differences() const;
  EquivalenceCounts equivalences() const;
};

// The engine is new, and its outputs are not bound; a mismatch of those who made it ends the replay (EngineMismatch).
// ConfigError: nothing to replay.
Replay replay_frames(std::span<const CapturedFrame> frames, const roce::Gid& address, nic::QpEngine& engine,
                     const Engines* made_by = nullptr, Abilities abilities = {});

// The same with a new engine of that choice.
Replay replay_as(std::span<const CapturedFrame> frames, const roce::Gid& address, const EngineOptions& options);

// Prints the report; 0: no difference, 1: differences. ConfigError, EngineMismatch.
int replay_wire(const ReplayOptions& options);

}  // namespace rnicsim::sim::replay
