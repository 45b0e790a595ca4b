// SPDX-License-Identifier: Apache-2.0
// Checks the first bytes of a trace's header, before the whole header is read.
#pragma once

#include <cstddef>
#include <span>

namespace rnicsim::sim {

// TraceError: the bytes are not the beginning of a trace of this version.
void check_header_start(std::span<const std::byte> bytes);

}  // namespace rnicsim::sim
