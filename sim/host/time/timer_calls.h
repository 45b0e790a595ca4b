// SPDX-License-Identifier: Apache-2.0
// POSIX timers that call a function (SIGEV_THREAD). A thread of this library receives the ends of these timers, and
// creates a thread for each call.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>

namespace rnicsim::clock {

// The simulator sends this signal to that thread when a timer ends. No program receives it.
inline constexpr int kEndSignal = 63;

// Keeps the function to call. Returns the value for the timer's signal; 0: no memory.
std::uint64_t keep_call(const sigevent& event);
// Virtual number of the thread that receives the ends, created at its first use; 0: it could not be created.
pid_t hearing_thread();
void forget_call(std::uint64_t call);
// The call belongs to the timer with this number: forget_call_of() forgets it.
void note_timer(std::uint64_t call, std::uint32_t timer);
void forget_call_of(std::uint32_t timer);
// In a forked child, which has no timers.
void forget_calls();

}  // namespace rnicsim::clock
