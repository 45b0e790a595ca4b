// SPDX-License-Identifier: Apache-2.0
// Makes the QP engines that the configuration names (config/engine_params.h).
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "model/nic/engine/engine_factory.h"
#include "sim/config/engine_params.h"

namespace rnicsim::sim {

// The RTL and its reference model (the C++ model in lockstep) disagreed. The difference is on stderr already.
class EngineMismatch : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Makes the QP engines of a run, and notes when an engine disagrees with its reference model. Must outlive the engines.
class Engines {
 public:
  // `waves`: FST file for the RTL's signals; empty: no file. ConfigError: the C++ model has no signals.
  explicit Engines(const EngineParams& params, std::filesystem::path waves = {});
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  // Factory of one NIC's engines. A `host` that is not empty becomes part of the file name: waves.fst becomes
  // waves-h0.fst. ConfigError: the file cannot be written.
  nic::EngineFactory factory(const std::string& host = "") { return factory(host, params_); }
  // The same, with engine parameters of its own.
  nic::EngineFactory factory(const std::string& host, const EngineParams& own);
  // Prints the histories of the RTL and of the reference model on stderr, and pauses the simulation.
  void mismatched(const std::string& host, const std::string& histories);
  // Text that mismatched() printed; empty: no mismatch. Results after a mismatch mean nothing.
  const std::string& mismatch() const { return mismatch_; }
  // Throws EngineMismatch after a mismatch.
  void check() const;

 private:
  const EngineParams params_;
  const std::filesystem::path waves_;
  std::string mismatch_;
};

}  // namespace rnicsim::sim
