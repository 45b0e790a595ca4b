// What --waterfall and --perfetto ask of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/waterfall/perfetto.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {

struct FollowOptions {
  bool waterfall = false;
  std::string perfetto;  // a file; empty: none
  std::uint64_t perfetto_wqes = 1000;
  std::uint64_t perfetto_samples = 100'000;

  bool any() const { return waterfall || !perfetto.empty(); }
};

class Follower {
 public:
  // To be made before any process of the simulation. ConfigError: the file cannot be made.
  Follower(System& system, const FollowOptions& options) : shows_(options.waterfall) {
    if (options.any()) waterfall_.emplace(system);
    if (!options.perfetto.empty())
      timeline_.emplace(system, *waterfall_, options.perfetto, options.perfetto_wqes, options.perfetto_samples);
  }

  // To be printed; nullptr: nobody asked.
  const Waterfall* shown() const { return shows_ ? &*waterfall_ : nullptr; }
  // The run has ended. ConfigError: the file could not be written.
  void finish() {
    if (timeline_) timeline_->finish();
  }

 private:
  const bool shows_;
  std::optional<Waterfall> waterfall_;
  std::optional<Timeline> timeline_;
};

}  // namespace rnicsim::sim
