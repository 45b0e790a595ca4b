// What a capture implies of the NIC at one address as a responder or receiver: what it was asked, what it lacked when
// it refused, and what reached its programs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/replay/capture/wire_capture.h"
#include "sim/replay/delivery.h"

namespace rnicsim::sim::replay {

struct Request {
  const WirePacket* packet = nullptr;
  std::uint32_t packets = 1;  // PSNs that it takes
  bool duplicate = false;
  bool executed = false;                 // in sequence, and not refused
  std::uint8_t refusal = 0;              // NAK or RNR NAK syndrome that the real NIC gave it
  roce::Psn refused_psn;                 // of that NAK: within a READ it may be a later one
  std::uint32_t msn = 0;                 // of the responder once it is executed
  std::optional<std::uint32_t> receive;  // bytes of the receive WQE posted just before it

  roce::Psn first_psn() const { return packet->psn(); }
  roce::Psn last_psn() const { return packet->psn() + (packets - 1); }
};

// A QP as a responder (RC), or as a receiver.
struct QpEnvironment {
  roce::Transport transport = roce::Transport::rc;
  roce::Qpn qpn;
  roce::Qpn number;  // the engine's
  roce::Qpn peer_qpn;
  roce::Gid peer{};
  roce::MacAddress peer_mac{};
  std::uint8_t path_mtu = 1;  // enum ibv_mtu: the smallest that every packet fits
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t qkey = 0;          // UD: that of most datagrams to it
  std::optional<roce::Gid> group;  // UD: whose datagrams it gets
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

// Fills in what follows from `requests` and `answers`: refusals, receives and executed requests.
void imply_answers(QpEnvironment& qp);
// Those that its requests name, and that it granted.
std::vector<RemoteRegion> granted_regions(const QpEnvironment& qp);

}  // namespace rnicsim::sim::replay
