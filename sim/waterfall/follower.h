// SPDX-License-Identifier: Apache-2.0
// Observers for --waterfall and --perfetto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/waterfall/perfetto.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

struct FollowOptions {
  bool waterfall = false;
  std::string perfetto;  // file; empty: none
  std::uint64_t perfetto_wqes = 1000;
  std::uint64_t perfetto_samples = 100'000;

  bool any() const { return waterfall || !perfetto.empty(); }
};

class Follower {
 public:
  // Make the object before any process of the simulation starts. ConfigError: the file cannot be created.
  Follower(System& system, const FollowOptions& options) : shows_(options.waterfall) {
    if (options.any()) waterfall_.emplace(system);
    if (!options.perfetto.empty())
      timeline_.emplace(system, *waterfall_, options.perfetto, options.perfetto_wqes, options.perfetto_samples);
  }

  // Waterfall to print; nullptr: not asked for.
  const Waterfall* shown() const { return shows_ ? &*waterfall_ : nullptr; }
  // Call at the end of the run. ConfigError: the file could not be written.
  void finish() {
    if (timeline_) timeline_->finish();
  }

 private:
  const bool shows_;
  std::optional<Waterfall> waterfall_;
  std::optional<Timeline> timeline_;
};

}  // namespace rnicsim::sim
