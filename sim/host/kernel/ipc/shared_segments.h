// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rnicsim::clock {

// shmat(2). It has a name of its own for the reason given in mappings.h.
void* attach_segment(int number, const void* address, int flags);

}  // namespace rnicsim::clock
