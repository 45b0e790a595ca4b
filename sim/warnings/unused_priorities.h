// SPDX-License-Identifier: Apache-2.0
// Warnings at the end of a run, one sentence each: PFC or marks (ECN) for priorities without any frame, and marks for
// frames that are all Not-ECT.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim {

class System;

// With several processes, all must call; only the process of rank 0 gets the sentences.
std::vector<std::string> priority_warnings(const System& system);

}  // namespace rnicsim::sim
