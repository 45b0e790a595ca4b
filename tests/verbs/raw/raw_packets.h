// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of raw packets: frames, raw packet QPs beside an endpoint's QP, and flow rules for the QPs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cstring>
#include <optional>
#include <vector>

#include "model/nic/capability_params.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {

using Mac = std::array<std::uint8_t, 6>;
using FrameBytes = std::vector<std::uint8_t>;

inline constexpr Mac kFarMac = {0x02, 0, 0, 0, 0, 0x77};
inline constexpr Mac kNearMac = {0x02, 0, 0, 0, 0, 0x66};
inline constexpr std::uint16_t kExperimental = 0x88b5;  // EtherType for local experiments

// Frame of `bytes` bytes. Payload bytes count up.
inline FrameBytes ethernet_frame(std::size_t bytes = 100, const Mac& to = kFarMac,
                                 std::uint16_t ether_type = kExperimental) {
  FrameBytes frame(bytes);
  std::ranges::copy(to, frame.begin());
  std::ranges::copy(kNearMac, frame.begin() + 6);
  frame[12] = std::uint8_t(ether_type >> 8);
  frame[13] = std::uint8_t(ether_type);
  for (std::size_t i = 14; i < bytes; ++i) frame[i] = std::uint8_t(i);
  return frame;
}

// IPv4 and UDP with checksums of 0: the UDP checksum is absent, the IP checksum is wrong.
inline FrameBytes udp_frame(std::uint16_t source_port, std::uint16_t destination_port, std::size_t payload = 64) {
  FrameBytes frame = ethernet_frame(42 + payload, kFarMac, 0x0800);
  const auto put = [&](std::size_t at, std::size_t value) {
    frame[at] = std::uint8_t(value >> 8);
    frame[at + 1] = std::uint8_t(value);
  };
  std::fill_n(frame.begin() + 14, 28, std::uint8_t{0});
  frame[14] = 0x45;
  put(16, 28 + payload);
  frame[22] = 64;
  frame[23] = 17;
  put(26, 0x0a09), put(28, 1);  // 10.9.0.1 to 10.9.0.2
  put(30, 0x0a09), put(32, 2);
  put(34, source_port);
  put(36, destination_port);
  put(38, 8 + payload);
  return frame;
}

inline FrameBytes with_tag(FrameBytes frame, std::uint16_t tag) {
  const std::uint8_t bytes[] = {0x81, 0, std::uint8_t(tag >> 8), std::uint8_t(tag)};
  frame.insert(frame.begin() + 12, std::begin(bytes), std::end(bytes));
  return frame;
}

// Frame as a program receives it with FCS: `came`'s FCS follows, lowest byte first.
inline FrameBytes with_fcs(FrameBytes frame, const FrameBytes& came) {
  boost::crc_32_type crc;
  crc.process_bytes(came.data(), came.size());
  for (int i = 0; i < 4; ++i) frame.push_back(std::uint8_t(crc.checksum() >> (8 * i)));
  return frame;
}

// One's complement sum of the IPv4 header; 0xffff if the checksum is right.
inline std::uint32_t ipv4_sum(const FrameBytes& frame) {
  std::uint32_t sum = 0;
  for (std::size_t at = 14; at < 34; at += 2) sum += std::uint32_t(frame[at]) << 8 | frame[at + 1];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

inline void post_frame_receive(const Endpoint& end, ibv_recv_wr& wr, ibv_sge& sge, std::size_t offset) {
  sge = {reinterpret_cast<std::uint64_t>(end.buffer.data()) + offset, 2048, end.mr->lkey};
  wr = {};
  wr.wr_id = offset;
  wr.sg_list = &sge;
  wr.num_sge = 1;
}

// Builds a flow rule: attributes, followed by specs.
class FlowRuleBytes {
 public:
  FlowRuleBytes() : bytes_(sizeof(ibv_flow_attr)) {
    attributes().size = sizeof(ibv_flow_attr);
    attributes().port = 1;
  }
  ibv_flow_attr& attributes() { return *reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }
  template <class Spec>
  FlowRuleBytes& add(ibv_flow_spec_type type, Spec spec) {
    spec.type = type;
    spec.size = sizeof spec;
    const auto* at = reinterpret_cast<const std::byte*>(&spec);
    bytes_.insert(bytes_.end(), at, at + sizeof spec);
    ++attributes().num_of_specs;
    return *this;
  }
  FlowRuleBytes& to_mac(const Mac& mac) {
    ibv_flow_spec_eth spec{};
    std::ranges::copy(mac, spec.val.dst_mac);
    std::ranges::fill(spec.mask.dst_mac, std::uint8_t{0xff});
    return add(IBV_FLOW_SPEC_ETH, spec);
  }
  FlowRuleBytes& to_udp_port(std::uint16_t port) {
    ibv_flow_spec_tcp_udp spec{};
    spec.val.dst_port = __builtin_bswap16(port);
    spec.mask.dst_port = 0xffff;
    return add(IBV_FLOW_SPEC_UDP, spec);
  }
  FlowRuleBytes& with(ibv_flow_attr_type type, std::uint16_t priority = 0, std::uint32_t flags = 0) {
    attributes().type = type;
    attributes().priority = priority;
    attributes().flags = flags;
    return *this;
  }
  ibv_flow* create(ibv_qp* qp) {
    errno = 0;
    return ibv_create_flow(qp, &attributes());
  }

 private:
  std::vector<std::byte> bytes_;
};

// A raw packet QP in RTS with its own CQ and a slot of an endpoint's memory.
class RawQueue {
 public:
  static constexpr std::size_t kSlot = 2048;

  struct Options {
    std::uint32_t create_flags = 0;
    std::uint16_t max_tso_header = 0;
  };

  RawQueue(Endpoint& end, std::size_t slot) : RawQueue(end, slot, Options{}) {}
  RawQueue(Endpoint& end, std::size_t slot, const Options& options) : end_(end), offset_(slot * 4 * kSlot) {
    ibv_cq_init_attr_ex of_cq{};
    of_cq.cqe = 64;
    of_cq.wc_flags = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_CVLAN;
    cq_ex = ibv_create_cq_ex(end.context, &of_cq);
    cq = ibv_cq_ex_to_cq(cq_ex);
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {16, 16, 2, 2, 0};
    wanted.qp_type = IBV_QPT_RAW_PACKET;
    wanted.sq_sig_all = 1;
    wanted.pd = end.pd;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
                       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.create_flags = options.create_flags;
    wanted.max_tso_header = options.max_tso_header;
    wanted.send_ops_flags = IBV_QP_EX_WITH_SEND | (options.max_tso_header != 0 ? IBV_QP_EX_WITH_TSO : 0);
    qp = ibv_create_qp_ex(end.context, &wanted);
    if (qp != nullptr) to_rts();
  }
  ~RawQueue() {
    for (ibv_flow* flow : flows_) EXPECT_EQ(ibv_destroy_flow(flow), 0);
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
  }
  RawQueue(const RawQueue&) = delete;
  RawQueue& operator=(const RawQueue&) = delete;

  void lead_here(FlowRuleBytes rule) {
    ibv_flow* flow = rule.create(qp);
    ASSERT_NE(flow, nullptr) << errno;
    flows_.push_back(flow);
  }
  // Posts up to three receives, one slot each.
  void receive(std::size_t count = 1) {
    for (; count > 0; --count) {
      ibv_recv_wr wr;
      ibv_sge sge;
      post_frame_receive(end_, wr, sge, offset_ + kSlot * (1 + posted_++ % 3));
      ibv_recv_wr* bad = nullptr;
      ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
    }
  }
  // Sends a frame and waits for the completion.
  void send(const FrameBytes& frame, unsigned flags = 0, ibv_wc_status status = IBV_WC_SUCCESS) {
    std::ranges::copy(frame, end_.buffer.begin() + std::ptrdiff_t(offset_));
    ibv_sge sge{reinterpret_cast<std::uint64_t>(end_.buffer.data()) + offset_, std::uint32_t(frame.size()),
                end_.mr->lkey};
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 0) {}
    EXPECT_EQ(wc.status, status);
  }
  // The next received frame; nullopt if none comes within 100 polls. `said`: its completion.
  std::optional<FrameBytes> received(ibv_wc* said = nullptr) {
    ibv_wc wc{};
    for (int look = 0; look < 100; ++look) {
      if (ibv_poll_cq(cq, 1, &wc) == 0) continue;
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.opcode, IBV_WC_RECV);
      if (said != nullptr) *said = wc;
      const auto from = end_.buffer.begin() + std::ptrdiff_t(wc.wr_id);
      return FrameBytes(from, from + wc.byte_len);
    }
    return std::nullopt;
  }
  bool nothing() { return !received(); }

  ibv_cq_ex* cq_ex = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;

 private:
  void to_rts() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    EXPECT_EQ(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PORT), 0);
    for (const auto state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
      attributes.qp_state = state;
      EXPECT_EQ(ibv_modify_qp(qp, &attributes, IBV_QP_STATE), 0);
    }
  }

  Endpoint& end_;
  const std::size_t offset_;
  std::size_t posted_ = 0;
  std::vector<ibv_flow*> flows_;
};

class RawPackets : public RcPair {
 protected:
  explicit RawPackets(const std::vector<std::string>& sets = {}) : RcPair(sets) {}
  void SetUp() override {
    if (!capabilities().raw) GTEST_SKIP() << "nic.capabilities.raw";
  }

  void run_both(const Body& on_h0, const Body& on_h1) {
    const auto body = [&](std::size_t me, const Body& action) {
      Endpoint end;
      action(end);
      meet(me);
    };
    run([&] { body(0, on_h0); }, [&] { body(1, on_h1); });
  }
  // h0 sends the frames when h1 is ready.
  void run_sending(const std::vector<FrameBytes>& frames, const Body& prepare_and_check) {
    run_both(
        [&](Endpoint& end) {
          RawQueue own(end, 0);
          meet(0);
          for (const auto& frame : frames) own.send(frame);
        },
        prepare_and_check);
  }
};

}  // namespace rnicsim::testing
