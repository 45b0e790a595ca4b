// SPDX-License-Identifier: Apache-2.0
// Bytes of the headers of a RoCEv2 frame, from Ethernet to the payload.
#pragma once

#include <cstddef>

#include "model/roce/headers.h"

namespace rnicsim::roce {

inline constexpr std::size_t kEthernetBytes = 14;  // without a VLAN tag
inline constexpr std::size_t kVlanTagBytes = 4;
inline constexpr std::size_t kIpv4Bytes = 20;
inline constexpr std::size_t kIpv6Bytes = 40;
inline constexpr std::size_t kUdpBytes = 8;
inline constexpr std::size_t kMaxFrameHeader =
    kEthernetBytes + kVlanTagBytes + kIpv6Bytes + kUdpBytes + Headers::kMaxBytes;

}  // namespace rnicsim::roce
