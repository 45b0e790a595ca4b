// SPDX-License-Identifier: Apache-2.0
// Locks on files in simulated time.
#pragma once

#include <fcntl.h>

#include <optional>

namespace rnicsim::clock {

// Result of an fcntl() command that waits for a lock or asks for its holder; nullopt: another command.
std::optional<int> control_lock(int fd, int command, struct flock* record);

}  // namespace rnicsim::clock
