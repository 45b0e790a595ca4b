// Copies from and to memory that another process shares, and may take away while we copy: a file that shrinks raises
// SIGBUS, which ends nothing here. False: not all of it was there.
#pragma once

#include <cstddef>
#include <span>

namespace rnicsim::sim {

bool copy_from_shared(std::span<std::byte> to, const std::byte* from);
// The last word becomes visible behind all others, as the last bytes of a TLP do: a driver that polls it finds the
// rest.
bool copy_to_shared(std::byte* to, std::span<const std::byte> from);

}  // namespace rnicsim::sim
