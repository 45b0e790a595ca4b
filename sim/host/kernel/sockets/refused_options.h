// SPDX-License-Identifier: Apache-2.0
// Options of SOL_SOCKET that UDP and netlink sockets cannot have.
#pragma once

namespace rnicsim::clock {

bool is_refused(int name);

}  // namespace rnicsim::clock
