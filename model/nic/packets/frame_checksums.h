// The checksums of IP, TCP and UDP in an Ethernet frame (RFC 1071): what a NIC does for the software above it.
#pragma once

#include <cstddef>
#include <span>

namespace rnicsim::nic {

// The outer IP header's, if it has one, and that of TCP or UDP are right; a fragment's is not known. False of what is
// not IP.
bool checksums_right(std::span<const std::byte> frame);

// Fills them in, as far as the frame has them; of a fragment IP's alone.
void fill_checksums(std::span<std::byte> frame);

}  // namespace rnicsim::nic
