// SPDX-License-Identifier: Apache-2.0
#include "sim/config/engine_params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/config/config_error.h"
#ifdef RNICSIM_RTL
#include "rtl/cosim/rtl_core.h"
#endif

namespace rnicsim::sim {

void EngineParams::describe(ParamVisitor& visit) {
  visit.param("kind", kind,
              "model, in C++; rtl, in SystemVerilog; or lockstep, the SystemVerilog engine compared with the C++ "
              "engine (docs/rtl.md)");
  visit.param("clock", clock, "clock period of the engine in SystemVerilog", {100, 1e9});
}

void EngineParams::limit([[maybe_unused]] nic::CapabilityParams& capabilities) const {
  if (std::ranges::find(kEngineKinds, kind) == std::end(kEngineKinds))
    throw ConfigError(fmt::format("engine.kind: '{}' is none of {}", shown(kind), fmt::join(kEngineKinds, ", ")));
  if (is_model()) return;
#ifdef RNICSIM_RTL
  rtl::limit_to_rtl(capabilities);
#else
  refuse_rtl(kind);
#endif
}

void EngineParams::check(const nic::TransportParams& transport) const {
  const bool plain =
      transport.loss_recovery() == roce::LossRecovery{} && transport.rto_high == Duration{} && !transport.read_acks;
  if (is_model() || plain) return;
  throw ConfigError(fmt::format(
      "nic.transport: the engine in SystemVerilog (engine.kind = {}) goes back N, and keeps no packets out of order: "
      "leave recovery, reorder_window, nak_gap, most_in_flight, read_acks and rto_high at their defaults",
      kind));
}

void EngineOptions::add_to(std::vector<std::string>& sets) const {
  if (!kind.empty()) sets.push_back("engine.kind=" + kind);
}

void refuse_rtl(const std::string& kind) {
  throw ConfigError(
      fmt::format("engine.kind: {}: this rnicsim was built without Verilator, and so without rtl/", kind));
}

}  // namespace rnicsim::sim
