// SPDX-License-Identifier: Apache-2.0
// Segmentation of a TCP stream's data, or of UDP datagrams, into frames: adapts the program's headers to each segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim::nic {

// `number`: segments before this one; `offset`: data bytes before it. Adapts IP's length and identification, TCP's
// sequence number and flags (FIN and PSH on the last segment only, CWR on the first only), and UDP's length. Does not
// update checksums.
void adapt_headers(std::span<std::byte> frame, std::uint32_t offset, std::uint32_t number, bool last);

}  // namespace rnicsim::nic
