// What the shell around the RTL keeps of a queue pair: the rings, WQEs, payload, and packets on their way. What the
// transport knows of it is in the RTL.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>

#include "model/base/fifo.h"
#include "model/base/pooled_list.h"
#include "model/nic/packet_lane.h"
#include "model/nic/qp_engine.h"
#include "model/nic/receive_ring.h"
#include "model/nic/send_ring.h"
#include "rtl/cosim/transactions.h"

namespace rnicsim::rtl {

struct RtlQp {
  RtlQp(nic::Qpn number, std::uint64_t birth, std::uint8_t place) : qpn(number), epoch(birth), slot(place) {}

  nic::Qpn qpn;
  std::uint64_t epoch;                   // tells this life of the number from earlier ones
  std::uint8_t slot;                     // in the RTL
  abi::Qpc context;
  roce::QpState state = roce::QpState::reset;
  bool resident = true;                  // else `context` is in ICM
  bool evicted = false;                  // `context` is to go there
  std::uint32_t tickets = 0;             // answers that it waits for, of the NIC and of the RTL

  // Sends: parsed, then in the RTL's window, whose oldest is message `retired`.
  nic::SendRing send_ring;
  Fifo<nic::ParsedSend> parsed;
  Fifo<nic::ParsedSend> window;
  std::uint64_t posted = 0;
  std::uint64_t retired = 0;
  std::uint16_t send_retired = 0;        // in blocks of the ring
  struct RequestPacket {
    SendRecord record;
    std::uint64_t message = 0;
  };
  Fifo<RequestPacket> request_packets;   // that the RTL put out, for which no transmit unit was free yet
  bool request_turn = false;
  nic::PacketLane requests;

  // Receives.
  nic::ReceiveRing receive_ring;
  PooledList<nic::PacketIn> inbound;
  bool asked = false;                    // the head is being judged, or something is looked up for it
  bool looks_for_receive = false;
  bool no_receive = false;
  std::optional<bool> access_granted;
  bool waits = false;                    // until the RTL has done something else for this queue pair
  bool established = false;
  bool deaf = false;                     // a fatal NAK is on its way
  std::optional<abi::EventType> fatal_event;  // behind it
  struct OwedCqe {
    nic::CqeWrite write;
    std::uint16_t receive_index = 0;
    std::uint8_t owed = 0;
  };
  Fifo<OwedCqe> cqes;                    // of messages whose payload is on its way
  // Of an answer owed: the request's PSN, the receive WQE that it belongs to, whether its payload is in memory.
  std::array<roce::Psn, kOwed> psn_of{};
  std::array<std::uint16_t, kOwed> receive_of{};
  std::bitset<kOwed> placed;
  Fifo<AnswerRecord> answer_packets;
  bool answer_turn = false;
  bool answers_void = false;             // until the NAK comes that takes their place
  nic::PacketLane answers;

  bool has_send() const { return (context.flags & abi::Qpc::kHasSend) != 0; }
  bool has_receive() const { return (context.flags & abi::Qpc::kHasReceive) != 0; }
  bool sends() const { return state == roce::QpState::rts || state == roce::QpState::sqd; }
  bool responds() const { return !deaf && (state == roce::QpState::rtr || sends()); }
  // Something under way needs the context.
  bool in_use() const {
    return tickets != 0 || !parsed.empty() || !window.empty() || !request_packets.empty() || requests.size() != 0 ||
           !inbound.empty() || !cqes.empty() || !answer_packets.empty() || answers.size() != 0;
  }
  // Of the window, by its number in the RTL.
  std::uint64_t message_of(std::uint8_t index) const { return retired + (index - retired) % kMessages; }
  nic::ParsedSend& message(std::uint8_t index) { return window[(index - retired) % kMessages]; }
};

}  // namespace rnicsim::rtl
