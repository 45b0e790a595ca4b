// SPDX-License-Identifier: Apache-2.0
// `rnicsim vm --wire unix:PATH`: the socket of another program's live wire (docs/live-wire.md).
#pragma once

#include <string>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

// Waits up to 10 s for the other end to listen. ConfigError: the text is not unix:PATH, or no process listens.
Descriptor connect_to_wire(const std::string& wire);

}  // namespace rnicsim::sim
