// System calls that go to the real kernel although they may tell of the real machine: they end reproducibility.
#pragma once

namespace rnicsim::clock {

void note_real_call(long number);

}  // namespace rnicsim::clock
