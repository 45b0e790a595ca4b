// Segmentation of a TCP stream's data, or of UDP datagrams, into frames: what each segment's headers say in the place
// of those that the program gave for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim::nic {

// Of `number` segments before it, and `offset` bytes of data: IP's length and identification, TCP's sequence number
// and flags (FIN and PSH on the last alone, CWR on the first), UDP's length. Checksums are not its affair.
void adapt_headers(std::span<std::byte> frame, std::uint32_t offset, std::uint32_t number, bool last);

}  // namespace rnicsim::nic
