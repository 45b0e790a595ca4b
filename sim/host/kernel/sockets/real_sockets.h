// SPDX-License-Identifier: Apache-2.0
// Sockets that leave the simulated network.
#pragma once

#include "sim/host/kernel/files/known_descriptors.h"

namespace rnicsim::clock {

// Replaces a socket whose first address is outside the simulated network by a real one with the same number.
int make_real(int fd, const KnownDescriptor& socket);

}  // namespace rnicsim::clock
