// The messages that the packets of a capture imply for a receiving program.
#pragma once

#include <vector>

#include "sim/replay/delivery.h"
#include "sim/replay/responder_environment.h"

namespace rnicsim::sim::replay {

// RC: what was executed, as QpEnvironment says. UC: messages of which nothing is missing. UD: datagrams with the QP's
// Q_Key.
std::vector<Delivery> implied_deliveries(const QpEnvironment& qp);

}  // namespace rnicsim::sim::replay
