// SPDX-License-Identifier: Apache-2.0
// The arguments of a system call as the kernel gets them: six words.
#pragma once

namespace rnicsim::clock {

using Words = long[6];

}  // namespace rnicsim::clock
