// Locks on files, in simulated time.
#pragma once

#include <fcntl.h>

#include <optional>

namespace rnicsim::clock {

// For fcntl: the answer to a command that waits for a lock, or asks who has it; nothing: another command.
std::optional<int> control_lock(int fd, int command, struct flock* record);

}  // namespace rnicsim::clock
