// SPDX-License-Identifier: Apache-2.0
// Notes about system calls that end reproducibility, because the real kernel answers them and may tell of the real
// machine.
#pragma once

namespace rnicsim::clock {

// The simulator reports the first of these calls.
void note_real_call(long number);

}  // namespace rnicsim::clock
