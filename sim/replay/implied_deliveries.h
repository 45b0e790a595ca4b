// SPDX-License-Identifier: Apache-2.0
// Messages that a capture's packets imply for a receiving program.
#pragma once

#include <vector>

#include "sim/replay/delivery.h"
#include "sim/replay/responder_environment.h"

namespace rnicsim::sim::replay {

// RC: executed requests (QpEnvironment). UC: messages without a missing packet. UD: datagrams with the QP's Q_Key.
std::vector<Delivery> implied_deliveries(const QpEnvironment& qp);

}  // namespace rnicsim::sim::replay
