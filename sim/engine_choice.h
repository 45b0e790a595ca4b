// Makes the QP engines that the configuration names (config/engine_params.h).
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "model/nic/engine/engine_factory.h"
#include "sim/config/engine_params.h"

namespace rnicsim::sim {

// The RTL and its referee did not agree: what was said of it is on stderr already.
class EngineMismatch : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Makes the engines of a run, which it outlives, and hears when one does not agree with its referee.
class Engines {
 public:
  // `waves`: FST file of the RTL's signals; empty: none. ConfigError: the model has none.
  explicit Engines(const EngineParams& params, std::filesystem::path waves = {});
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  // Of one NIC. `host`, unless it is empty, is in the name of its waves, too: waves.fst becomes waves-h0.fst.
  // ConfigError: they cannot be written.
  nic::EngineFactory factory(const std::string& host = "") { return factory(host, params_); }
  // Of one that has an engine of its own.
  nic::EngineFactory factory(const std::string& host, const EngineParams& own);
  // Shows what each of the two did, and pauses the simulation.
  void mismatched(const std::string& host, const std::string& histories);
  // What mismatched() showed, until then empty. From then on nothing that happens means anything.
  const std::string& mismatch() const { return mismatch_; }
  // Throws EngineMismatch after a mismatch.
  void check() const;

 private:
  const EngineParams params_;
  const std::filesystem::path waves_;
  std::string mismatch_;
};

}  // namespace rnicsim::sim
