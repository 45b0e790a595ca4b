// SPDX-License-Identifier: Apache-2.0
// The invariant CRC of RoCEv2 (IBTA vol 1, A17.3.3): CRC-32 over a pseudo LRH of ones, the headers from IP on with the
// fields that routers change masked to ones, the payload and its pad. On the wire it is little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rnicsim::roce {

inline constexpr std::size_t kIcrcBytes = 4;

// `headers` starts at the IP header and ends at the payload.
std::uint32_t icrc(std::span<const std::byte> headers, std::span<const std::byte> payload,
                   std::span<const std::byte> pad);

}  // namespace rnicsim::roce
