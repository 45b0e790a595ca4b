// SPDX-License-Identifier: Apache-2.0
#include "model/host/log.h"

#include <spdlog/spdlog.h>

namespace rnicsim::host {

void log_warning(const std::string& text) { spdlog::warn(text); }
void log_error(const std::string& text) { spdlog::error(text); }

}  // namespace rnicsim::host
