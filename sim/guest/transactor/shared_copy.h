// SPDX-License-Identifier: Apache-2.0
// Copies from and to memory that is shared with another process. When the other process shrinks the file behind the
// memory, an access raises SIGBUS; these functions catch the signal and return false.
#pragma once

#include <cstddef>
#include <span>

namespace rnicsim::sim {

bool copy_from_shared(std::span<std::byte> to, const std::byte* from);
// The last word is stored after all others: a driver that polls the last byte of an entry then finds the complete
// entry.
bool copy_to_shared(std::byte* to, std::span<const std::byte> from);

}  // namespace rnicsim::sim
