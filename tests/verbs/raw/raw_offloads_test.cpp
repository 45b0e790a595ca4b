// SPDX-License-Identifier: Apache-2.0
// Offloads of raw packets: segmentation, removal of VLAN tags, delivery of the FCS.
#include <optional>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/verbs/raw/raw_packets.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint32_t kSequence = 0x00fffff0;  // carries into the upper half
constexpr std::uint16_t kMss = 800;
constexpr std::size_t kHeaderBytes = 54;

// Ethernet, IPv4 and TCP; the device fills in fields that depend on the segment.
FrameBytes tcp_headers() {
  FrameBytes headers = udp_frame(5000, 80, kHeaderBytes - 42);
  headers[23] = 6;
  std::fill(headers.begin() + 38, headers.end(), std::uint8_t{0});
  for (int i = 0; i < 4; ++i) headers[std::size_t(38 + i)] = std::uint8_t(kSequence >> (24 - 8 * i));
  headers[46] = 0x50;
  headers[47] = 0x18;  // ACK, PSH
  return headers;
}

std::uint32_t number_at(const FrameBytes& frame, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | frame[at + i];
  return value;
}

class RawOffloads : public RawPackets {
 protected:
  explicit RawOffloads(const std::vector<std::string>& sets = {}) : RawPackets(sets) {}

  static ibv_sge data_of(const Endpoint& end, std::uint32_t bytes) {
    return {reinterpret_cast<std::uint64_t>(end.buffer.data()), bytes, end.mr->lkey};
  }
  static int post(Endpoint& end, const RawQueue& own, std::uint32_t bytes, unsigned flags) {
    auto headers = tcp_headers();
    ibv_sge sge = data_of(end, bytes);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_TSO;
    wr.send_flags = flags;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.tso = {headers.data(), std::uint16_t(headers.size()), kMss};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(own.qp, &wr, &bad);
  }
  static int build(Endpoint& end, const RawQueue& own, std::uint32_t bytes, unsigned flags) {
    auto headers = tcp_headers();
    const ibv_sge sge = data_of(end, bytes);
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(own.qp);
    ibv_wr_start(qp);
    qp->wr_id = 0;
    qp->wr_flags = flags;
    ibv_wr_send_tso(qp, headers.data(), std::uint16_t(headers.size()), kMss);
    ibv_wr_set_sge_list(qp, 1, &sge);
    return ibv_wr_complete(qp);
  }
  static void expect_segment(const FrameBytes& frame, std::uint32_t index, std::uint32_t of_data) {
    const std::size_t at = std::size_t{index} * kMss, bytes = std::min<std::size_t>(kMss, of_data - at);
    ASSERT_EQ(frame.size(), kHeaderBytes + bytes);
    EXPECT_EQ(number_at(frame, 16, 2), kHeaderBytes - 14 + bytes) << "IP's length";
    EXPECT_EQ(number_at(frame, 18, 2), index) << "IP's identification";
    EXPECT_EQ(number_at(frame, 38, 4), kSequence + at);
    EXPECT_EQ(frame[47], at + bytes == of_data ? 0x18 : 0x10) << "PSH on the last";
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(frame[kHeaderBytes + i], std::uint8_t(at + i + 1));
  }

  using Send = int (*)(Endpoint&, const RawQueue&, std::uint32_t, unsigned);
  // A message of several frames; the last one is shorter.
  void segments_cross(Send send, unsigned flags) {
    constexpr std::uint32_t kBytes = 2 * kMss + 300;
    run_both(
        [&](Endpoint& end) {
          RawQueue own(end, 4, {.max_tso_header = 64});
          fill(end);
          meet(0);
          ASSERT_EQ(send(end, own, kBytes, flags), 0);
          const auto wc = completion_soon(own.cq, 1000);
          ASSERT_TRUE(wc);
          EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc->opcode, IBV_WC_TSO);
          EXPECT_FALSE(completion_soon(own.cq)) << "one for all";
        },
        [&](Endpoint& end) {
          RawQueue own(end, 0);
          own.lead_here(FlowRuleBytes().to_mac(kFarMac));
          own.receive(3);
          meet(1);
          for (std::uint32_t i = 0; i < 3; ++i) {
            ibv_wc wc{};
            const auto frame = own.received(&wc);
            ASSERT_TRUE(frame) << i;
            expect_segment(*frame, i, kBytes);
            EXPECT_EQ((wc.wc_flags & IBV_WC_IP_CSUM_OK) != 0, flags == IBV_SEND_IP_CSUM);
            EXPECT_EQ(ipv4_sum(*frame) == 0xffff, flags == IBV_SEND_IP_CSUM);
          }
        });
    EXPECT_EQ(wire().size(), 3u);
  }
  static ibv_wc_status status_of_message(Endpoint& end, const RawQueue& own, std::uint32_t bytes) {
    EXPECT_EQ(post(end, own, bytes, 0), 0);
    const auto wc = completion_soon(own.cq, 1000);
    EXPECT_TRUE(wc);
    return wc ? wc->status : IBV_WC_GENERAL_ERR;
  }
};

TEST_F(RawOffloads, AMessageLeavesInSegments) { segments_cross(post, IBV_SEND_IP_CSUM); }

TEST_F(RawOffloads, AMessageLeavesInSegmentsByTheExtendedCalls) { segments_cross(build, IBV_SEND_IP_CSUM); }

TEST_F(RawOffloads, ChecksumsOfSegmentsAreThereIfAskedFor) { segments_cross(post, 0); }

TEST_F(RawOffloads, SegmentsNeedAQueuePairWithHeaders) {
  run_alone([](Endpoint& end) {
    RawQueue own(end, 0);
    EXPECT_EQ(status_of_message(end, own, 100), IBV_WC_LOC_QP_OP_ERR);
  });
}

class ShortMessages : public RawOffloads {
 protected:
  ShortMessages() : RawOffloads({"nic.capabilities.max_tso=1000"}) {}
};

TEST_F(ShortMessages, NoLongerThanTheDeviceSays) {
  run_alone([](Endpoint& end) {
    ibv_device_attr_ex device;
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    EXPECT_EQ(device.tso_caps.max_tso, 1000u);
    RawQueue own(end, 0, {.max_tso_header = 256});
    EXPECT_EQ(status_of_message(end, own, 1000), IBV_WC_SUCCESS);
    EXPECT_EQ(status_of_message(end, own, 1001), IBV_WC_LOC_LEN_ERR);
  });
}

// Tag and length of the next completion, from the extended CQ.
struct TaggedLength {
  std::uint16_t tag = 0;
  std::uint32_t bytes = 0;
  bool operator==(const TaggedLength&) const = default;
};
std::optional<TaggedLength> next_tagged(ibv_cq_ex* cq) {
  ibv_poll_cq_attr attributes{};
  for (int look = 0; look < 100; ++look) {
    if (ibv_start_poll(cq, &attributes) != 0) continue;
    const TaggedLength read{ibv_wc_read_cvlan(cq), ibv_wc_read_byte_len(cq)};
    ibv_end_poll(cq);
    return read;
  }
  return std::nullopt;
}

TEST_F(RawOffloads, ATagComesBesideItsFrame) {
  const auto plain = ethernet_frame(200);
  run_sending({with_tag(plain, 0x6123), plain}, [&](Endpoint& end) {
    RawQueue own(end, 0, {.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING});
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    own.receive(2);
    meet(1);
    EXPECT_EQ(next_tagged(own.cq_ex), (TaggedLength{0x6123, 200}));
    EXPECT_EQ(next_tagged(own.cq_ex), (TaggedLength{0, 200}));
    for (const std::ptrdiff_t slot : {1, 2}) {
      const auto from = end.buffer.begin() + slot * std::ptrdiff_t{RawQueue::kSlot};
      EXPECT_EQ(FrameBytes(from, from + 200), plain);
    }
  });
}

TEST_F(RawOffloads, ATagStaysWhereNobodyAskedForIt) {
  const auto tagged = with_tag(ethernet_frame(200), 0x6123);
  run_sending({tagged, tagged}, [&](Endpoint& end) {
    RawQueue own(end, 0);
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    own.receive(2);
    meet(1);
    EXPECT_EQ(own.received(), tagged);
    EXPECT_EQ(next_tagged(own.cq_ex), (TaggedLength{0, 204}));
  });
}

TEST_F(RawOffloads, TheFcsLiesBehindTheFrame) {
  const auto plain = ethernet_frame(200);
  const auto tagged = with_tag(plain, 7);
  run_sending({plain, tagged}, [&](Endpoint& end) {
    RawQueue own(end, 0, {.create_flags = IBV_QP_CREATE_SCATTER_FCS});
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    own.receive(2);
    meet(1);
    EXPECT_EQ(own.received(), with_fcs(plain, plain));
    EXPECT_EQ(own.received(), with_fcs(tagged, tagged));
  });
}

// DMA writes of received data are padded to the end of the last cache line, but not beyond the buffer.
TEST_F(RawOffloads, WritesArePaddedToWholeCacheLines) {
  const auto frame = ethernet_frame(100);
  std::uint64_t padded = 0, plain = 0;
  run_sending({frame, frame, frame, frame}, [&](Endpoint& end) {
    RawQueue own(end, 0, {.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING});
    ASSERT_NE(own.qp, nullptr);
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    const auto buffer = reinterpret_cast<std::uintptr_t>(end.buffer.data());
    // Buffers with room; with room for a part of the padding; without room; and in two pieces, the last with room.
    struct Case {
      std::vector<ibv_sge> list;
      std::size_t ends, padding;
    };
    const auto at = [&](std::size_t offset, std::uint32_t bytes) {
      return ibv_sge{buffer + offset, bytes, end.mr->lkey};
    };
    const std::vector<Case> cases = {{{at(20480, 2048)}, 20480 + 100, 28},
                                     {{at(24576, 110)}, 24576 + 100, 10},
                                     {{at(28672, 100)}, 28672 + 100, 0},
                                     {{at(32768, 50), at(36864, 64)}, 36864 + 50, 14}};
    std::ranges::fill(end.buffer.begin() + 16384, end.buffer.end(), std::uint8_t{0xee});
    for (auto [list, ends, padding] : cases) {
      ibv_recv_wr wr{0, nullptr, list.data(), int(list.size())};
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(own.qp, &wr, &bad), 0);
    }
    plain = host(1).nic().counters().dma.write_bytes;
    meet(1);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto wc = completion_soon(own.cq, 1000);
      ASSERT_TRUE(wc) << i;
      EXPECT_EQ(wc->byte_len, 100u);  // bytes of the frame alone
      const auto [list, ends, padding] = cases[i];
      std::size_t zeros = 0;
      while (end.buffer[ends + zeros] == 0) ++zeros;
      EXPECT_EQ(zeros, padding) << i;
      EXPECT_EQ(end.buffer[ends + padding], 0xee) << i;
      padded += padding;
    }
  });
  EXPECT_EQ(padded, 52u);
  EXPECT_GE(host(1).nic().counters().dma.write_bytes - plain, 4 * 100 + padded);
}

TEST_F(RawOffloads, OnlyWhoReceivesFramesPadsThem) {
  run_alone([](Endpoint& end) {
    for (const auto type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
      ibv_qp_init_attr_ex wanted{};
      wanted.send_cq = wanted.recv_cq = end.cq;
      wanted.cap = {4, 4, 1, 1, 0};
      wanted.qp_type = type;
      wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
      wanted.pd = end.pd;
      wanted.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING;
      errno = 0;
      EXPECT_EQ(ibv_create_qp_ex(end.context, &wanted), nullptr);
      EXPECT_EQ(errno, EINVAL);
    }
  });
}

TEST_F(RawOffloads, TheFcsIsOfTheFrameAsItCame) {
  const auto plain = ethernet_frame(200);
  const auto tagged = with_tag(plain, 7);
  run_sending({tagged}, [&](Endpoint& end) {
    RawQueue own(end, 0, {.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SCATTER_FCS});
    own.lead_here(FlowRuleBytes().to_mac(kFarMac));
    own.receive();
    meet(1);
    EXPECT_EQ(own.received(), with_fcs(plain, tagged));
  });
}

}  // namespace
}  // namespace rnicsim::testing
