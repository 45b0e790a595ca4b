// SPDX-License-Identifier: Apache-2.0
// Copies from and to addresses that the program gave. An invalid address is an error (false) instead of a fault.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

namespace rnicsim::clock {

bool copy_in(void* to, const void* from, std::size_t bytes);
bool copy_out(void* to, const void* from, std::size_t bytes);
bool copy_to_parts(std::span<const iovec> parts, const void* from, std::size_t bytes);

}  // namespace rnicsim::clock
