#include "model/nic/engine_factory.h"

#include "model/nic/model_engine.h"

namespace rnicsim::nic {

std::unique_ptr<QpEngine> make_model_engine(const QpLimits& limits) { return std::make_unique<ModelEngine>(limits); }

}  // namespace rnicsim::nic
