// SPDX-License-Identifier: Apache-2.0
// Descriptors of timers and signals (timerfd, signalfd). Each is an eventfd that the simulator counts up. Processes
// with the same descriptor share its timer, or its set of signals.
#pragma once

namespace rnicsim::clock {

// Call before a descriptor is closed or its number is given to another file: the timer or the signal watch ends for
// this process with its last descriptor.
void let_go_of_event(int fd);
// True: a descriptor of a timer or of signals, which programs can only read.
bool is_of_event(int fd);
// Registers a descriptor that came from another image or process.
void know_event(int fd);
// In a forked child: its signalfds show the child's own signals.
void take_inherited_signals();

}  // namespace rnicsim::clock
