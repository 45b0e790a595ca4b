// SPDX-License-Identifier: Apache-2.0
// Facts about the NIC at one address as a responder or receiver that a capture implies: the requests, the resources
// missing when a request was refused, and the messages delivered to programs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/replay/capture/wire_capture.h"
#include "sim/replay/delivery.h"

namespace rnicsim::sim::replay {

struct Request {
  const WirePacket* packet = nullptr;
  std::uint32_t packets = 1;  // number of PSNs used
  bool duplicate = false;
  bool executed = false;                 // in sequence and not refused
  std::uint8_t refusal = 0;              // syndrome of the real NIC's NAK or RNR NAK; 0: not refused
  roce::Psn refused_psn;                 // PSN of that NAK: within a READ it may be a later one than the first
  std::uint32_t msn = 0;                 // MSN of the responder after the request
  std::optional<std::uint32_t> receive;  // bytes of the receive WQE posted just before the request

  roce::Psn first_psn() const { return packet->psn(); }
  roce::Psn last_psn() const { return packet->psn() + (packets - 1); }
};

// A QP as a responder (RC), or as a receiver.
struct QpEnvironment {
  roce::Transport transport = roce::Transport::rc;
  roce::Qpn qpn;
  roce::Qpn number;  // the engine's QP number
  roce::Qpn peer_qpn;
  roce::Gid peer{};
  roce::MacAddress peer_mac{};
  std::uint8_t path_mtu = 1;  // enum ibv_mtu: the smallest that fits every packet
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t qkey = 0;          // UD: Q_Key of most datagrams to the QP
  std::optional<roce::Gid> group;  // UD: multicast group that the QP receives
  roce::Psn first_psn;
  std::vector<Request> requests;
  std::vector<const WirePacket*> answers;
  std::vector<Delivery> deliveries;

  bool reliable() const { return transport == roce::Transport::rc; }
};

struct RemoteRegion {
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint32_t length = 0;
};

// Derives refusals, receives and executed requests from `requests` and `answers`.
void imply_answers(QpEnvironment& qp);
// Regions that the QP's requests name and that were granted.
std::vector<RemoteRegion> granted_regions(const QpEnvironment& qp);

}  // namespace rnicsim::sim::replay
