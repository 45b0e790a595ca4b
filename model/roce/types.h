// SPDX-License-Identifier: Apache-2.0
// The transport's types: strong identifiers, 24-bit packet sequence numbers, states and statuses. Enumerators have the
// values of the verbs API (enum ibv_qp_state, ibv_qp_type, ibv_wc_status).
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace rnicsim::roce {

template <class Kind>
struct Id {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};
using Qpn = Id<struct QpnKind>;
using Cqn = Id<struct CqnKind>;
using Lkey = Id<struct LkeyKind>;
using Rkey = Id<struct RkeyKind>;

// Packet sequence number, with serial arithmetic modulo 2^24 (IBTA vol 1, 9.7.1).
class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xffffff;

  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t value) : value_(value & kMask) {}
  constexpr std::uint32_t value() const { return value_; }
  constexpr bool operator==(const Psn&) const = default;
  friend constexpr Psn operator+(Psn psn, std::uint32_t n) { return Psn(psn.value_ + n); }
  friend constexpr Psn operator-(Psn psn, std::uint32_t n) { return Psn(psn.value_ - n); }
  // Distance of `to` after `from`: -2^23 .. 2^23 - 1.
  friend constexpr std::int32_t distance(Psn from, Psn to) {
    return static_cast<std::int32_t>((to.value_ - from.value_) << 8) >> 8;
  }
  friend constexpr bool before(Psn a, Psn b) { return distance(a, b) > 0; }

 private:
  std::uint32_t value_ = 0;
};

using MacAddress = std::array<std::uint8_t, 6>;
using Gid = std::array<std::uint8_t, 16>;
// Value of a VLAN number (0 to 4095) for frames without a tag.
inline constexpr std::uint16_t kNoVlan = 0xffff;

enum class QpState : std::uint8_t { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, error = 6 };
enum class Transport : std::uint8_t {
  rc = 2,
  uc = 3,
  ud = 4,
  raw = 8,  // whole Ethernet frames
  xrc_send = 9,
  xrc_recv = 10,
};

// True if the peer answers requests.
constexpr bool is_reliable(Transport transport) {
  return transport == Transport::rc || transport == Transport::xrc_send || transport == Transport::xrc_recv;
}
constexpr bool is_connected(Transport transport) { return is_reliable(transport) || transport == Transport::uc; }

enum class Status : std::uint8_t {
  success = 0,
  local_length_error = 1,
  local_qp_operation_error = 2,
  local_protection_error = 4,
  flushed_error = 5,
  memory_window_bind_error = 6,
  bad_response_error = 7,
  local_access_error = 8,
  remote_invalid_request_error = 9,
  remote_access_error = 10,
  remote_operation_error = 11,
  transport_retry_exceeded = 12,
  rnr_retry_exceeded = 13,
};

inline constexpr std::uint32_t kAtomicBytes = 8;
inline constexpr std::uint32_t kGrhBytes = 40;  // before the payload of a received datagram

inline constexpr std::uint32_t kMulticastQpn = 0xffffff;  // every QP of the multicast group

// enum ibv_mtu (1..5) in bytes.
constexpr std::uint32_t mtu_bytes(std::uint8_t code) { return 128u << code; }
constexpr std::uint32_t packets_for(std::uint32_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : (length - 1) / mtu + 1;
}

}  // namespace rnicsim::roce
