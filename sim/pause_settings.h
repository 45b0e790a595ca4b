// What is likely to be wrong in a configuration's flow control (PFC), in a sentence each: pauses that the other end of
// a cable does not obey, and headroom that is too small for what comes until a pause acts.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim {

struct Config;

// At most so many; then how many more there are.
std::vector<std::string> pause_warnings(const Config& config);

}  // namespace rnicsim::sim
