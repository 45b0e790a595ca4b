// POSIX timers that call a function (SIGEV_THREAD): a thread of ours hears of their ends, and makes one for each call.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>

namespace rnicsim::clock {

// With this signal, which nobody else gets, the simulator tells that thread of an end.
inline constexpr int kEndSignal = 63;

// What is to be called; the signal's value. 0: there is no room for it.
std::uint64_t keep_call(const sigevent& event);
// The number of the thread that hears of ends; 0: it could not be made.
pid_t hearing_thread();
void forget_call(std::uint64_t call);
// It is of the timer with this number, and goes with it.
void note_timer(std::uint64_t call, std::uint32_t timer);
void forget_call_of(std::uint32_t timer);
// In a forked child, which has no timers.
void forget_calls();

}  // namespace rnicsim::clock
