// The first bytes of a trace's header, before the header is whole.
#pragma once

#include <cstddef>
#include <span>

namespace rnicsim::sim {

// They are those of a trace of this version; else TraceError.
void check_header_start(std::span<const std::byte> bytes);

}  // namespace rnicsim::sim
