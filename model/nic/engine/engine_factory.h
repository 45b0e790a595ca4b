// SPDX-License-Identifier: Apache-2.0
// Makes the QP engine of a NIC, with limits from the NIC's parameters.
#pragma once

#include <functional>
#include <memory>

namespace rnicsim::roce {
class QpCore;
}

namespace rnicsim::nic {

class QpEngine;
struct QpLimits;

using EngineFactory = std::function<std::unique_ptr<QpEngine>(const QpLimits& limits)>;

std::unique_ptr<QpEngine> make_model_engine(const QpLimits& limits);
// Makes an engine with this core.
std::unique_ptr<QpEngine> make_engine(const QpLimits& limits, std::unique_ptr<roce::QpCore> core);

}  // namespace rnicsim::nic
