// Which QP engine the NICs have: the model's; the one in SystemVerilog (rtl/); or that one in lockstep with the
// transport core, which checks all it does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/base/params.h"
#include "model/nic/capability_params.h"
#include "model/nic/engine/transport_params.h"

namespace rnicsim::sim {

struct EngineParams {
  std::string kind = "model";
  Duration clock{4'000};

  void describe(ParamVisitor& visit);
  bool is_model() const { return kind == "model"; }
  // Takes away what the engine can't do. ConfigError: there is no such engine, or none in this build.
  void limit(nic::CapabilityParams& capabilities) const;
  // ConfigError: the engine has not what the transport is to do.
  void check(const nic::TransportParams& transport) const;
};

inline constexpr const char* kEngineKinds[] = {"model", "rtl", "lockstep"};

// What a command line says of it.
struct EngineOptions {
  std::string kind;           // empty: as the configuration says
  std::filesystem::path fst;  // empty: no waves

  // Behind what is set already.
  void add_to(std::vector<std::string>& sets) const;
};

// Throws ConfigError: this build has no rtl/.
[[noreturn]] void refuse_rtl(const std::string& kind);

}  // namespace rnicsim::sim
