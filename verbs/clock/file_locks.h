// Waiting for a lock on a file, in simulated time.
#pragma once

#include <fcntl.h>

#include <optional>

namespace rnicsim::clock {

// For fcntl: the answer to a command that waits; nothing: another command.
std::optional<int> wait_for_record(int fd, int command, struct flock* record);

}  // namespace rnicsim::clock
