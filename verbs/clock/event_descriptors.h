// Timers and signals behind descriptors (timerfd, signalfd): each is an event descriptor (eventfd) that the simulator
// counts up. Processes that have one share what stands behind it.
#pragma once

namespace rnicsim::clock {

// Before a descriptor is closed, or its number given to another: what stands behind it goes with the last one.
void let_go_of_event(int fd);
// It can only be read.
bool is_of_event(int fd);
// One that came from another image or process.
void know_event(int fd);
// In a forked child: it sees its own signals.
void take_inherited_signals();

}  // namespace rnicsim::clock
