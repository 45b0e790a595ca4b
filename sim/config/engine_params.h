// SPDX-License-Identifier: Apache-2.0
// Choice of a NIC's QP engine: the C++ model; the SystemVerilog engine (rtl/); or the SystemVerilog engine in lockstep
// with the transport core, which checks each step.
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
  // Removes capabilities that the engine lacks. ConfigError: no such engine, or not in this build.
  void limit(nic::CapabilityParams& capabilities) const;
  // ConfigError: the engine lacks a feature that the transport parameters ask for.
  void check(const nic::TransportParams& transport) const;
};

inline constexpr const char* kEngineKinds[] = {"model", "rtl", "lockstep"};

// Engine options of a command line.
struct EngineOptions {
  std::string kind;           // empty: the configuration decides
  std::filesystem::path fst;  // file for the RTL's waves; empty: none

  // Appends the options to the settings.
  void add_to(std::vector<std::string>& sets) const;
};

// Throws ConfigError: this build has no rtl/.
[[noreturn]] void refuse_rtl(const std::string& kind);

}  // namespace rnicsim::sim
