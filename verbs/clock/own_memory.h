// A program's memory where the program says it is: an address that is none is an error, and no fault.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

namespace rnicsim::clock {

bool copy_in(void* to, const void* from, std::size_t bytes);
bool copy_out(void* to, const void* from, std::size_t bytes);
bool copy_to_parts(std::span<const iovec> parts, const void* from, std::size_t bytes);

}  // namespace rnicsim::clock
