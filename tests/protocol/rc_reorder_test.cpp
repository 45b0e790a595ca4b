// SPDX-License-Identifier: Apache-2.0
// Packets that arrive early: the responder keeps them, places their payload, and reports them to the sender, which
// retransmits only the missing packets. With go-back-0 the whole message is sent again (nic.transport).
#include <gmock/gmock.h>

#include <array>
#include <cstring>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_reorder_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Sets = std::vector<std::string>;

constexpr std::uint32_t kMtu = 1024;
constexpr std::uint32_t kPackets = 8;
constexpr std::uint8_t kUntouched = 0xee;

std::uint8_t pattern(std::size_t i) { return static_cast<std::uint8_t>(i * 13 + i / 251 + 7); }

class Reorder : public RcWire {
 protected:
  explicit Reorder(const std::vector<std::string>& faults, const Sets& sets) : RcWire(faults, 1, sets) {
    options_.psn = 0;
    options_.timeout = 8;
  }
  static void fill(Endpoint& end) {
    for (std::size_t i = 0; i < end.buffer.size(); ++i) end.buffer[i] = pattern(i);
  }
  static void prepare(Endpoint& end, bool is_source) {
    if (is_source) return fill(end);
    std::ranges::fill(end.buffer, kUntouched);
  }
  // One message of eight packets from the first half of h0's buffer to the first half of h1's, or in the other
  // direction for a READ.
  void transfer(ibv_wr_opcode operation) {
    run_connected(
        [&](Endpoint& end) {
          prepare(end, operation != IBV_WR_RDMA_READ);
          meet(0);
          ASSERT_EQ(end.post(end.request(operation, 0, kPackets * kMtu, 0)), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          if (operation == IBV_WR_RDMA_READ) expect_message(end);
          meet(0);
        },
        [&](Endpoint& end) {
          prepare(end, operation == IBV_WR_RDMA_READ);
          const bool takes = operation == IBV_WR_SEND || operation == IBV_WR_RDMA_WRITE_WITH_IMM;
          if (takes) {
            ASSERT_EQ(end.receive(0, kPackets * kMtu), 0);
          }
          meet(1);
          if (takes) {
            const auto wc = end.completion();
            EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
            EXPECT_EQ(wc.byte_len, kPackets * kMtu);
            expect_message(end);
          }
          meet(1);
          if (operation != IBV_WR_RDMA_READ) expect_message(end);
        },
        options_, options_);
  }
  static void expect_message(const Endpoint& end) {
    for (std::size_t i = 0; i < kPackets * kMtu; ++i) ASSERT_EQ(end.buffer[i], pattern(i)) << i;
    EXPECT_EQ(end.buffer[kPackets * kMtu], kUntouched);
  }
  std::vector<WirePacket> naks() const {
    auto packets = answers();
    std::erase_if(packets, [](const auto& packet) { return !packet.is_nak(roce::Aeth::kNak); });
    return packets;
  }

  EndpointOptions options_;
};

// --- Selective retransmission.
const Sets kSelective{"nic.transport.recovery=selective", "nic.transport.reorder_window=64"};

class SelectiveLoss : public Reorder, public ::testing::WithParamInterface<ibv_wr_opcode> {
 protected:
  SelectiveLoss() : Reorder({"drop,host=h0,count=1,psn=3"}, kSelective) {}
};
TEST_P(SelectiveLoss, IsSentAgainAlone) {
  transfer(GetParam());
  auto numbers = psns(requests());
  ASSERT_EQ(numbers.size(), kPackets + 1u);
  EXPECT_EQ(std::ranges::count(numbers, 3u), 2);
  // Each packet behind the gap reports the missing packet, and its own arrival.
  const auto told = naks();
  ASSERT_EQ(told.size(), 4u);
  EXPECT_EQ(host(0).nic().counters().engine.packet_seq_err, 1u);
  EXPECT_EQ(host(0).nic().counters().engine.selective_retransmits, 1u);
  EXPECT_EQ(told[0].headers.aeth->syndrome, roce::Aeth::kSelectiveNak);
  for (const auto& nak : told) EXPECT_EQ(nak.psn(), 3u);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].headers.aeth->msn, 4 + i);
}
INSTANTIATE_TEST_SUITE_P(Of, SelectiveLoss,
                         ::testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM));

class SelectiveLostFirst : public Reorder {
 protected:
  SelectiveLostFirst() : Reorder({"drop,host=h0,count=1,psn=0"}, kSelective) {}
};
// Without the first packet the target address is unknown: the payload of the others is kept.
TEST_F(SelectiveLostFirst, TheOthersAreKept) {
  transfer(IBV_WR_RDMA_WRITE);
  EXPECT_EQ(requests().size(), kPackets + 1u);
}

class SelectiveLostResponse : public Reorder {
 protected:
  SelectiveLostResponse() : Reorder({"drop,host=h1,count=1,psn=3"}, kSelective) {}
};
TEST_F(SelectiveLostResponse, IsAskedForAlone) {
  transfer(IBV_WR_RDMA_READ);
  const auto asked = requests();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[1].psn(), 3u);
  EXPECT_EQ(asked[1].headers.reth->length, kMtu);
  EXPECT_EQ(asked[1].headers.reth->address, asked[0].headers.reth->address + 3 * kMtu);
  EXPECT_EQ(answers().size(), kPackets + 1u);
}

class SelectiveTail : public Reorder {
 protected:
  SelectiveTail()
      : Reorder({"drop,host=h0,count=1,psn=7"},
                {kSelective[0], kSelective[1], "nic.transport.rto_low=100us", "nic.transport.rto_high=320us"}) {
    options_.timeout = 14;  // 67 ms
  }
};
// No packet behind the loss reports it. All eight packets are then unacknowledged, more than three.
TEST_F(SelectiveTail, TheTimerOfManyPacketsFindsIt) {
  transfer(IBV_WR_RDMA_WRITE);
  const auto sent = requests();
  ASSERT_GT(sent.size(), kPackets);
  EXPECT_EQ(sent.back().psn(), 7u);
  const auto waited = sent[kPackets].at - sent[kPackets - 1].at;
  EXPECT_GE(waited.ps, Duration{320'000'000}.ps);
  EXPECT_LT(waited.ps, Duration{330'000'000}.ps);
  EXPECT_EQ(host(0).nic().counters().engine.roce_adp_retrans, 1u);
}

// --- Placing out of order.
class EarlyPayload : public Reorder {
 protected:
  EarlyPayload() : Reorder({"drop,host=h0,psn=3,count=2"}, kSelective) {}
};
TEST_F(EarlyPayload, IsInMemoryBeforeTheMissingPacket) {
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, kPackets * kMtu, 0)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Endpoint& end) {
        std::ranges::fill(end.buffer, kUntouched);
        ASSERT_EQ(end.receive(0, 0), 0);
        meet(1);
        pass(1, Duration{50'000'000});
        EXPECT_EQ(end.buffer[3 * kMtu], kUntouched);
        EXPECT_EQ(end.buffer[7 * kMtu], pattern(7 * kMtu));
        EXPECT_FALSE(completion_soon(end.cq, 10));  // the completion comes in order, after all payload
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        expect_message(end);
        meet(1);
      },
      options_, options_);
}

class Window : public Reorder, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  Window()
      : Reorder({"reorder,host=h0,psn=2,count=1,by=3"}, {"nic.transport.reorder_window=" + std::to_string(GetParam()),
                                                         "nic.transport.nak_gap=" + std::to_string(GetParam())}) {}
};
// Packet 2 arrives after packet 5, which is three packets ahead.
TEST_P(Window, OfThePacketsThatOvertakeIsEnough) {
  transfer(IBV_WR_RDMA_WRITE);
  if (GetParam() >= 3) {
    EXPECT_THAT(naks(), IsEmpty());
    EXPECT_EQ(requests().size(), kPackets);
  } else {
    EXPECT_FALSE(naks().empty());
    EXPECT_GT(requests().size(), kPackets);
  }
}
INSTANTIATE_TEST_SUITE_P(Packets, Window, ::testing::Values(0u, 1u, 2u, 3u, 4u, 100u));

// --- Go-back-0.
class GoBack0 : public Reorder, public ::testing::WithParamInterface<ibv_wr_opcode> {
 protected:
  GoBack0() : Reorder({"drop,host=h0,count=1,psn=3"}, {"nic.transport.recovery=go_back_0"}) {}
};
TEST_P(GoBack0, TheMessageBeginsOnceMore) {
  transfer(GetParam());
  EXPECT_THAT(psns(requests()), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7));
  ASSERT_EQ(naks().size(), 1u);
  EXPECT_EQ(naks()[0].psn(), 0u);
}
INSTANTIATE_TEST_SUITE_P(Of, GoBack0, ::testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM));

// --- All together, over a cable that loses and reorders packets.
struct Mode {
  const char* name;
  Sets sets;
};
void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

class BadCable : public Reorder, public ::testing::WithParamInterface<Mode> {
 protected:
  BadCable() : Reorder({"drop=0.03", "reorder=0.1,by=4", "duplicate=0.02"}, GetParam().sets) {}
};
TEST_P(BadCable, EveryMessageArrivesOnceAndInOrder) {
  constexpr std::uint32_t kMessages = 24, kSlot = 2048;
  constexpr std::array kOperations{IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM};
  const auto bytes_of = [](std::uint32_t i) { return 1 + (i * 397) % kSlot; };
  const auto is = [&](std::uint32_t i, ibv_wr_opcode operation) { return kOperations[i % 4] == operation; };
  options_.buffer_bytes = 4 * kMessages * kSlot;
  options_.mtu = IBV_MTU_256;
  options_.max_wr = kMessages;
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        std::fill_n(end.buffer.begin() + 2 * kMessages * kSlot, kMessages * kSlot, kUntouched);
        meet(0);
        for (std::uint32_t i = 0; i < kMessages; ++i) {
          const bool read = is(i, IBV_WR_RDMA_READ);
          auto wr = end.request(kOperations[i % 4], (read ? 2 * kMessages + i : i) * kSlot, bytes_of(i), i * kSlot);
          wr.wr_id = i;
          wr.imm_data = i;
          ASSERT_EQ(end.post(wr), 0);
        }
        for (std::uint32_t i = 0; i < kMessages; ++i) {
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.wr_id, i);
        }
        for (std::uint32_t i = 0; i < kMessages; ++i)
          for (std::uint32_t at = 0; is(i, IBV_WR_RDMA_READ) && at < bytes_of(i); ++at)
            ASSERT_EQ(end.buffer[(2 * kMessages + i) * kSlot + at], pattern(i * kSlot + at)) << i << " " << at;
        meet(0);
      },
      [&](Endpoint& end) {
        fill(end);
        for (std::uint32_t i = 0; i < kMessages; ++i)
          if (!is(i, IBV_WR_RDMA_READ)) std::fill_n(end.buffer.begin() + i * kSlot, kSlot, kUntouched);
        for (std::uint32_t i = 0; i < kMessages; ++i)
          if (is(i, IBV_WR_SEND) || is(i, IBV_WR_RDMA_WRITE_WITH_IMM)) {
            ASSERT_EQ(end.receive((kMessages + i) * kSlot, kSlot, i), 0);
          }
        meet(1);
        for (std::uint32_t i = 0; i < kMessages; ++i) {
          if (!is(i, IBV_WR_SEND) && !is(i, IBV_WR_RDMA_WRITE_WITH_IMM)) continue;
          const auto wc = end.completion();
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.wr_id, i);
          EXPECT_EQ(wc.byte_len, bytes_of(i));
          const auto to = is(i, IBV_WR_SEND) ? kMessages + i : i;
          for (std::uint32_t at = 0; at < bytes_of(i); ++at)
            ASSERT_EQ(end.buffer[to * kSlot + at], pattern(i * kSlot + at)) << i << " " << at;
        }
        meet(1);
        for (std::uint32_t i = 0; i < kMessages; ++i)
          for (std::uint32_t at = 0; is(i, IBV_WR_RDMA_WRITE) && at < kSlot; ++at)
            ASSERT_EQ(end.buffer[i * kSlot + at], at < bytes_of(i) ? pattern(i * kSlot + at) : kUntouched) << i;
      },
      options_, options_);
}

// Every packet has a RETH: packets behind a missing first packet can be placed, too.
class RethInEach : public Reorder {
 protected:
  RethInEach()
      : Reorder({"drop,host=h0,count=1,psn=0"},
                {kSelective[0], kSelective[1], "nic.transport.reth=each", "nic.transport.reorder_buffer=0 B"}) {}
};
TEST_F(RethInEach, NothingWaitsForAPlace) {
  transfer(IBV_WR_RDMA_WRITE);
  EXPECT_EQ(requests().size(), kPackets + 1u);
  for (const auto& packet : requests()) EXPECT_TRUE(packet.headers.reth);
}

// A congestion window full of lost packets does not block their retransmission.
class WindowAndLoss : public Reorder {
 protected:
  WindowAndLoss()
      : Reorder({"drop,host=h0,nth=20"},
                {kSelective[0], kSelective[1], "nic.congestion.control=swift", "nic.congestion.swift.base_target=100ns",
                 "nic.congestion.swift.min_cwnd=4"}) {
    options_.timeout = 14;  // 67 ms
    options_.buffer_bytes = 1 << 18;
  }
};
TEST_F(WindowAndLoss, TheLostPacketPassesTheWindow) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 60 * kMtu, 0)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Endpoint&) {
        meet(1);
        meet(1);
      },
      options_, options_);
  EXPECT_EQ(host(0).nic().counters().engine.local_ack_timeout_err, 0u);
  EXPECT_EQ(host(0).nic().counters().engine.selective_retransmits, 1u);
}

INSTANTIATE_TEST_SUITE_P(
    With, BadCable,
    ::testing::Values(Mode{"go_back_n", {}}, Mode{"keeping", {"nic.transport.reorder_window=16"}},
                      Mode{"keeping_patient", {"nic.transport.reorder_window=16", "nic.transport.nak_gap=6"}},
                      Mode{"selective", kSelective},
                      Mode{"selective_limited", {kSelective[0], kSelective[1], "nic.transport.most_in_flight=8"}},
                      Mode{"selective_patient", {kSelective[0], kSelective[1], "nic.transport.nak_gap=6"}},
                      Mode{"selective_read_acks",
                           {kSelective[0], kSelective[1], "nic.transport.most_in_flight=8",
                            "nic.transport.read_acks=true"}}));

}  // namespace
}  // namespace rnicsim::testing::rc_reorder_test
