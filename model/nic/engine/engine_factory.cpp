// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/engine_factory.h"

#include "model/nic/engine/shell/engine_shell.h"
#include "model/roce/transport_core.h"

namespace rnicsim::nic {

std::unique_ptr<QpEngine> make_model_engine(const QpLimits& limits) {
  return make_engine(limits, std::make_unique<roce::TransportCore>(limits.sends_ahead));
}

std::unique_ptr<QpEngine> make_engine(const QpLimits& limits, std::unique_ptr<roce::QpCore> core) {
  return std::make_unique<EngineShell>(limits, std::move(core));
}

}  // namespace rnicsim::nic
