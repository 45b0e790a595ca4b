// SPDX-License-Identifier: Apache-2.0
// Checksums of IP, TCP and UDP in an Ethernet frame (RFC 1071): checksum offload for software.
#pragma once

#include <cstddef>
#include <span>

namespace rnicsim::nic {

// True if the checksums of the outer IP header (if it has one) and of TCP or UDP are right. False for a fragment, whose
// checksum is not known, and for a frame that is not IP.
bool checksums_right(std::span<const std::byte> frame);

// Fills in the checksums that the frame has; for a fragment only that of the IP header.
void fill_checksums(std::span<std::byte> frame);

}  // namespace rnicsim::nic
