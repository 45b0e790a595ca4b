// Is a thread that does not come back waiting for memory to change? While it has its turn the world stands still, so a
// loop that comes round to the same instruction with the same registers and the same memory, having made no call, will
// do so for ever: it waits for the device. The proof follows the thread's steps, and what it writes; a loop that counts
// or computes is never taken for a wait.
#pragma once

namespace rnicsim::clock {

void prepare_looks();  // once

// In handlers of ours. errno is the program's, before and after: its own code may set it meanwhile.
void begin_look(void* context);          // in kLookSignal's handler
bool begin_look_at_mark(void* context);  // in SIGTRAP's, after a breakpoint; false: it is not ours
void continue_look(void* context);       // in SIGTRAP's, after each step
void abandon_look(void* context);        // the thread did something else; one at its reads of clocks goes on

}  // namespace rnicsim::clock
