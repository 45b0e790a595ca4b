#pragma once

namespace rnicsim::clock {

// Before a descriptor is closed: its timer goes with the last one that has it.
void let_go_of_timer(int fd);

}  // namespace rnicsim::clock
