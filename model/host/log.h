// SPDX-License-Identifier: Apache-2.0
// Log messages of the simulator. A header of its own, because spdlog.h takes a compiler seconds.
#pragma once

#include <string>

namespace rnicsim::host {

void log_warning(const std::string& text);
void log_error(const std::string& text);

}  // namespace rnicsim::host
