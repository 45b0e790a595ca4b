// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of the RC transport on the wire: all packets that both hosts sent or received, decoded and with
// their times, and forged packets.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model/nic/nic.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "model/roce/packet.h"
#include "sim/adapter.h"
#include "tests/support/wire_frames.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {

struct WirePacket {
  Duration at;
  std::uint32_t from;
  roce::Headers headers;
  std::uint32_t payload;

  roce::Opcode opcode() const { return headers.bth.opcode; }
  std::uint32_t psn() const { return headers.bth.psn.value(); }
  bool request() const { return !roce::info(opcode()).response(); }
  bool is_nak(std::uint8_t kind) const {
    return headers.aeth && (headers.aeth->syndrome & roce::Aeth::kClassMask) == kind;
  }
};

class RcWire : public RcPair {
 protected:
  explicit RcWire(const std::vector<std::string>& faults = {}, std::uint64_t seed = 1,
                  const std::vector<std::string>& sets = {})
      : RcPair(sets, faults, seed) {
    for (std::uint32_t i = 0; i < 2; ++i)
      host(i).nic().blocks().rx.received.subscribe([this, i](const nic::PacketTrace& packet) {
        taken_.push_back({now(), 1 - i, packet.headers, packet.payload.size()});
      });
  }

  // Sent packets, with the time at which the last bit left, also if the packet was lost; and received packets, with the
  // time at which the receiver's pipeline finished the packet.
  std::vector<WirePacket> sent() const {
    std::vector<WirePacket> packets;
    for (const auto& frame : wire()) {
      const auto parsed = roce::parse_frame(frame.bytes, frame.bytes.size());
      EXPECT_EQ(parsed.error, roce::ParseError::none);
      packets.push_back({frame.at, frame.from, parsed.headers, parsed.payload_bytes});
    }
    return packets;
  }
  const std::vector<WirePacket>& taken() const { return taken_; }

  std::vector<WirePacket> requests(std::uint32_t from = 0) const {
    auto packets = sent();
    std::erase_if(packets, [&](const auto& packet) { return packet.from != from || !packet.request(); });
    return packets;
  }
  std::vector<WirePacket> answers(std::uint32_t from = 1) const {
    auto packets = sent();
    std::erase_if(packets, [&](const auto& packet) { return packet.from != from || packet.request(); });
    return packets;
  }
  static std::vector<std::uint32_t> psns(const std::vector<WirePacket>& packets) {
    std::vector<std::uint32_t> numbers;
    for (const auto& packet : packets) numbers.push_back(packet.psn());
    return numbers;
  }

  // A packet that the other host never sent arrives at host `to`. The addresses are copied from packets on the wire.
  void forge(std::uint32_t to, const roce::Headers& headers, std::uint32_t payload = 0) {
    ASSERT_FALSE(wire().empty());
    forge(to, addresses_to(to), headers, payload);
  }
  void forge(std::uint32_t to, const roce::FrameAddresses& addresses, const roce::Headers& headers,
             std::uint32_t payload) {
    const std::vector<std::byte> bytes(payload, std::byte{0xf0});
    host(to).nic().receive(Frame::of(Payload::copy_of(sim::replay::test::frame_of(addresses, headers, bytes))));
  }
  roce::FrameAddresses addresses_to(std::uint32_t to) const {
    const auto& model = wire().front();
    auto addresses = roce::parse_frame(model.bytes, model.bytes.size()).addresses;
    if (model.from == to) {
      std::swap(addresses.source, addresses.destination);
      std::swap(addresses.source_mac, addresses.destination_mac);
    }
    return addresses;
  }
  static roce::Headers answer_headers(roce::Opcode opcode, std::uint32_t qpn, std::uint32_t psn,
                                      std::uint8_t syndrome = roce::Aeth::kAck | roce::Aeth::kNoCredits) {
    roce::Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.destination = {qpn};
    headers.bth.psn = roce::Psn(psn);
    if (roce::info(opcode).has(roce::header::kAeth)) headers.aeth = roce::Aeth{syndrome, 0};
    if (roce::info(opcode).has(roce::header::kAtomicAck)) headers.atomic_ack = 0;
    return headers;
  }

  void pass_until(std::size_t me, Duration time) {
    settle(me);
    sleep_until(time);
  }
  // Lets simulated time pass until `count` requests have left h0.
  void await_requests(std::size_t me, std::size_t count) {
    while (requests().size() < count) pass(me, Duration{100'000});
  }

 private:
  std::vector<WirePacket> taken_;
};

}  // namespace rnicsim::testing
