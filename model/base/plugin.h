// SPDX-License-Identifier: Apache-2.0
// A policy that is built outside of this source tree, as a shared library that RNICSIM_PLUGINS names:
//
//   const PolicyEntry<roce::CongestionControl> kEntry{"mine", make, make_policy_params<MineParams>};
//   RNICSIM_PLUGIN
//
// Loading the library registers its policies (policy.h): congestion controls, queue disciplines and path choices.
// docs/own-control.md follows one from an empty folder.
#pragma once

#include <cstdint>

namespace rnicsim {

// Version of the interfaces that a plugin is compiled against: model/base/policy.h, policy_params.h, params.h, units.h
// and telemetry.h, model/roce/congestion.h, model/base/ports/queue_discipline.h, model/fabric/path_choice.h with the
// headers that it includes. Raise the number when one of them changes.
inline constexpr std::uint32_t kPluginInterface = 5;

}  // namespace rnicsim

#define RNICSIM_PLUGIN                                                                            \
  extern "C" __attribute__((visibility("default"))) const std::uint32_t rnicsim_plugin_interface; \
  const std::uint32_t rnicsim_plugin_interface = rnicsim::kPluginInterface;
