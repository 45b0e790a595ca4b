// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of congestion control: two NICs whose frames from a to b get marks, and CNPs made by hand.
#pragma once

#include <functional>
#include <vector>

#include "model/base/kernel.h"
#include "model/nic/nic_counters.h"
#include "model/nic/packets/packet.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/packet.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {

using abi::CqeSyndrome;
using abi::SendOpcode;

class NicCongestion : public Pair {
 protected:
  struct Seen {
    Duration at;
    roce::FrameAddresses addresses;
    roce::Headers headers;
    std::vector<std::byte> bytes;
  };

  void SetUp() override {
    params_.congestion.control.name = "dcqcn";
    params_.congestion.ecn = "forced";
  }
  // `marks`: true if a data packet from a to b gets CE.
  void start(std::function<bool()> marks = [] { return true; }) {
    build(params_);
    connect();
    drop() = [this, marks](Frame& frame) {
      const auto* packet = frame.as<Packet>();
      if (packet == nullptr) return false;
      const bool cnp = packet->headers.bth.opcode == roce::Opcode::cnp;
      auto& seen = cnp ? cnps_ : others_;
      seen.push_back({now(), packet->addresses, packet->headers, {}});
      frame.append_to(seen.back().bytes);
      if (frame.is_markable() && marks()) frame.mark();
      return false;
    };
  }
  void write(int count, std::uint32_t bytes = 8) {
    for (int i = 0; i < count; ++i) a().post_send({.opcode = SendOpcode::write, .length = bytes, .remote = at_b()});
    for (int i = 0; i < count; ++i) EXPECT_EQ(a().wait_status(kSendCqn, 1_s), CqeSyndrome::success);
  }
  NotificationCounters notified() { return b().nic.counters().notification; }
  EngineCounters heard() { return a().nic.counters().engine; }
  // Gives a's NIC a CNP, as if it came over the cable.
  void give_cnp(const std::function<void(Packet&)>& change) {
    auto packet = Packet::make();
    packet->headers.bth.opcode = roce::Opcode::cnp;
    packet->headers.bth.destination = {kQpn};
    packet->addresses = cnps_.front().addresses;
    packet->put(Payload(16));
    change(*packet);
    packet->seal(0, false);
    a().nic.receive(Frame(packet), 0_ns);
    run(5);
  }

  NicParams params_;
  std::vector<Seen> cnps_, others_;
};

}  // namespace rnicsim::nic::test
