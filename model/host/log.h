// What the simulator says to the person at the terminal. Apart from spdlog.h, which a source pays for in seconds.
#pragma once

#include <string>

namespace rnicsim::host {

void log_warning(const std::string& text);
void log_error(const std::string& text);

}  // namespace rnicsim::host
