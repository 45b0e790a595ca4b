// The order in which a port acted on what its capture holds. What came in just before the port sent something may not
// have reached its communication manager yet: the two crossed in the port.
#pragma once

#include "sim/replay/cm/cm_traffic.h"

namespace rnicsim::sim::replay {

// A host that has much to do may take so long for what has come. It is much less than any timeout.
inline constexpr Duration kReaction{100'000'000'000};

// Messages that came are put behind those of the port's that no manager sends when it knows of them.
CmTraffic as_acted_upon(CmTraffic traffic);

}  // namespace rnicsim::sim::replay
