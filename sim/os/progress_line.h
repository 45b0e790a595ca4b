// The last line of a terminal, which tells how far a simulation is. Nothing of it is in a file or a pipe: it is on
// standard error, and only if that is a terminal.
#pragma once

#include <string>

#include "model/base/units.h"

namespace rnicsim::sim::progress_line {

// In place of what it said before; cut at the terminal's width.
void show(const std::string& text);
// Before anything else is printed.
void erase();
// From now on there is none: somebody else works at the terminal.
void turn_off();
// Whether it is time to say something new: a few times a second at most, and on a terminal only.
bool is_due();

// "1.5 ms simulated, 300 us a second": the rate is that since the last call.
std::string pace(Duration simulated);

}  // namespace rnicsim::sim::progress_line
