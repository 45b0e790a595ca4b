// SPDX-License-Identifier: Apache-2.0
// The queue pair's state table: attributes that a transition requires and allows, by transport (IBTA vol 1, 11.2.5.2,
// as in the Linux core). Masks have the bits of enum ibv_qp_attr_mask.
#pragma once

#include <cstdint>

#include "model/roce/types.h"

namespace rnicsim::roce {

namespace attr {
inline constexpr std::uint32_t kState = 1u << 0;
inline constexpr std::uint32_t kCurrentState = 1u << 1;
inline constexpr std::uint32_t kSqdNotify = 1u << 2;
inline constexpr std::uint32_t kAccess = 1u << 3;
inline constexpr std::uint32_t kPkeyIndex = 1u << 4;
inline constexpr std::uint32_t kPort = 1u << 5;
inline constexpr std::uint32_t kQkey = 1u << 6;
inline constexpr std::uint32_t kPath = 1u << 7;
inline constexpr std::uint32_t kPathMtu = 1u << 8;
inline constexpr std::uint32_t kTimeout = 1u << 9;
inline constexpr std::uint32_t kRetryCount = 1u << 10;
inline constexpr std::uint32_t kRnrRetry = 1u << 11;
inline constexpr std::uint32_t kReceivePsn = 1u << 12;
inline constexpr std::uint32_t kMaxRdAtomic = 1u << 13;
inline constexpr std::uint32_t kAlternatePath = 1u << 14;
inline constexpr std::uint32_t kMinRnrTimer = 1u << 15;
inline constexpr std::uint32_t kSendPsn = 1u << 16;
inline constexpr std::uint32_t kMaxDestRdAtomic = 1u << 17;
inline constexpr std::uint32_t kMigration = 1u << 18;
inline constexpr std::uint32_t kRemoteQpn = 1u << 20;
inline constexpr std::uint32_t kRateLimit = 1u << 25;
inline constexpr std::uint32_t kStripVlan = 1u << 26;  // specific to this device: for raw packets
}  // namespace attr

enum class Transition : std::uint8_t { ok, not_allowed, missing_attribute, extra_attribute };

// `mask` without attr::kState means a modification within `from`.
Transition check_transition(Transport transport, QpState from, QpState to, std::uint32_t mask);

}  // namespace rnicsim::roce
