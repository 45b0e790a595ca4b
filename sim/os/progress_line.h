// SPDX-License-Identifier: Apache-2.0
// The last line of a terminal, which shows the progress of a simulation. The line is written to standard error, and
// only when that is a terminal.
#pragma once

#include <string>

#include "model/base/units.h"

namespace rnicsim::sim::progress_line {

// Replaces the line's text; the text is cut at the terminal's width.
void show(const std::string& text);
// Call before anything else is printed.
void erase();
// No progress line from now on: another program uses the terminal.
void turn_off();
// True: time to show a new text. At most a few times a second, and never without a terminal.
bool is_due();

// "1.5 ms simulated, 300 us a second"; the rate is the average since the last call.
std::string pace(Duration simulated);

}  // namespace rnicsim::sim::progress_line
