// Which QP engine the NICs have: the model's; the one in SystemVerilog (rtl/); or that one in lockstep with the
// transport core, which checks all it does.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/base/params.h"
#include "model/nic/capability_params.h"
#include "model/nic/engine_factory.h"

namespace rnicsim::sim {

struct EngineParams {
  std::string kind = "model";
  Duration clock{4'000};

  void describe(ParamVisitor& visit);
  bool is_model() const { return kind == "model"; }
  // Takes away what the engine can't do. ConfigError: there is no such engine, or none in this build.
  void limit(nic::CapabilityParams& capabilities) const;
};

inline constexpr const char* kEngineKinds[] = {"model", "rtl", "lockstep"};

// What a command line says of it.
struct EngineOptions {
  std::string kind;           // empty: as the configuration says
  std::filesystem::path fst;  // empty: no waves

  // Behind what is set already.
  void add_to(std::vector<std::string>& sets) const;
};

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
