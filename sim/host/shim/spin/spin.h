// SPDX-License-Identifier: Apache-2.0
// Checks whether a thread that keeps its turn waits for memory to change. While the thread has its turn, the world
// stands still. A loop that comes back to the same instruction with the same registers and the same memory, and makes
// no call, would repeat for ever: it waits for the device. The check follows the thread's steps and its writes to
// memory. A loop that counts or computes is never taken for a wait.
#pragma once

namespace rnicsim::clock {

void prepare_looks();  // once

// Call in handlers of this library. errno is the program's before and after the call: the program's code may set it
// during the check.
void begin_look(void* context);          // in kLookSignal's handler
bool begin_look_at_mark(void* context);  // in SIGTRAP's, after a breakpoint; false: the breakpoint is not of
                                         // loop_marks.h
void continue_look(void* context);       // in SIGTRAP's, after each step
void abandon_look(void* context);        // the thread does something else; a check of a loop of clock reads goes on

}  // namespace rnicsim::clock
