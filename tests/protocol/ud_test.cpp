// SPDX-License-Identifier: Apache-2.0
// UD on the wire: headers and addresses, to one host, to a group and to the own device; and hostile packets of a forged
// peer.
#include <gmock/gmock.h>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/protocol/unreliable_wire.h"

namespace rnicsim::testing::ud_test {
namespace {

using roce::Opcode;
using ::testing::ElementsAre;

constexpr std::uint32_t kGrh = 40;

class UdWire : public UnreliableWire {
 protected:
  static EndpointOptions ud(std::uint8_t gid_index = 1) { return of_type(IBV_QPT_UD, gid_index); }
  roce::FrameAddresses addresses(std::size_t frame) const {
    const auto& bytes = wire()[frame].bytes;
    return roce::parse_frame(bytes, bytes.size()).addresses;
  }
  static roce::MacAddress mac_of(const sim::Adapter& host) {
    roce::MacAddress mac;
    std::copy_n(host.interface().mac, mac.size(), mac.begin());
    return mac;
  }
};

TEST_F(UdWire, ADatagramIsOnePacket) {
  std::uint32_t from = 0, to = 0;
  run_connected(
      [&](Endpoint& end) {
        from = end.qp->qp_num;
        meet(0);
        complete(end, end.request(IBV_WR_SEND, 0, 0));
        auto wr = end.request(IBV_WR_SEND_WITH_IMM, 0, 4095);
        wr.imm_data = htobe32(0x0a0b0c0d);
        complete(end, wr);
        wr = end.request(IBV_WR_SEND, 0, 4096);
        wr.wr.ud.remote_qkey = 0x89abcdef;  // top bit set: the QP's own Q_Key is sent instead
        complete(end, wr);
        pass(0, kSettled);
      },
      [&](Endpoint& end) {
        to = end.qp->qp_num;
        for (int i = 0; i < 3; ++i) ASSERT_EQ(end.receive(0, 5000), 0);
        meet(1);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      ud(), ud());
  const auto packets = sent();
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_THAT(psns(packets), ElementsAre(kPsn, kPsn + 1, 0u));
  const std::uint32_t payloads[] = {0, 4095, 4096};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& headers = packets[i].headers;
    EXPECT_EQ(packets[i].from, 0u);
    EXPECT_EQ(packets[i].opcode(), i == 1 ? Opcode::ud_send_only_imm : Opcode::ud_send_only);
    EXPECT_EQ(packets[i].payload, payloads[i]);
    EXPECT_EQ(headers.bth.pad, -payloads[i] & 3);
    EXPECT_EQ(headers.bth.destination.value, to);
    EXPECT_FALSE(headers.bth.ack_request);
    EXPECT_EQ(headers.bth.pkey, 0xffff);
    ASSERT_TRUE(headers.deth);
    EXPECT_EQ(headers.deth->source.value, from);
    EXPECT_EQ(headers.deth->qkey, EndpointOptions{}.qkey);
    const auto at = addresses(i);
    EXPECT_EQ(at.source_mac, mac_of(host(0)));
    EXPECT_EQ(at.destination_mac, mac_of(host(1)));
    EXPECT_EQ(at.source_port, roce::source_port_for({from}, {to}));
  }
  EXPECT_EQ(packets[1].headers.immediate, 0x0a0b0c0du);
}

// The values of the address handle are in the IP header, and stand before the payload at the receiver.
TEST_F(UdWire, TheAddressHandleIsTheIpHeader) {
  std::vector<std::uint8_t> grh;
  run_connected(
      [&](Endpoint& end) {
        ibv_ah_attr path{};
        path.is_global = 1;
        path.port_num = 1;
        path.grh.sgid_index = 0;
        path.grh.hop_limit = 7;
        path.grh.traffic_class = 0x28;
        path.grh.flow_label = 0x12345;
        ibv_gid other;
        ASSERT_EQ(ibv_query_gid(end.context, 1, 0, &other), 0);
        const auto& mac = host(1).interface().mac;
        path.grh.dgid = other;  // the same prefix, with the interface ID of the other host
        const std::uint8_t interface[] = {std::uint8_t(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
        std::copy_n(interface, 8, path.grh.dgid.raw + 8);
        ibv_ah* ah = ibv_create_ah(end.pd, &path);
        ASSERT_NE(ah, nullptr);
        meet(0);
        auto wr = end.request(IBV_WR_SEND, 0, 10);
        wr.wr.ud.ah = ah;
        complete(end, wr);
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 100), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 10);
        grh.assign(end.buffer.begin(), end.buffer.begin() + kGrh);
      },
      ud(0), ud(0));
  ASSERT_EQ(wire().size(), 1u);
  const auto at = addresses(0);
  EXPECT_EQ(at.hop_limit, 7);
  EXPECT_EQ(at.traffic_class, 0x28);
  EXPECT_EQ(at.flow_label, 0x12345u);
  EXPECT_TRUE(std::ranges::equal(grh, std::span(wire()[0].bytes).subspan(14, kGrh),
                                 [](std::uint8_t byte, std::byte other) { return byte == std::uint8_t(other); }));
}

TEST_F(UdWire, ToItselfNothingIsOnTheWire) {
  run_alone(
      [&](Endpoint& end) {
        end.connect(end.address());
        ASSERT_EQ(end.receive(8192, 2000), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 1000)), 0);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(end.buffer[8192 + 20], 0x45);
      },
      ud());
  EXPECT_TRUE(wire().empty());
  EXPECT_EQ(host(0).nic().counters().loopback.frames, 1u);
}

// --- Groups.
struct Group {
  const char* name;
  std::uint8_t gid_index;
  std::array<std::uint8_t, 16> gid;
  roce::MacAddress mac;
};
void PrintTo(const Group& group, std::ostream* out) { *out << group.name; }
const Group kIpv4Group{"ipv4",
                       1,
                       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 0x81, 2, 9},
                       {0x01, 0x00, 0x5e, 0x01, 0x02, 0x09}};  // MAC with the low 23 bits of the address
const Group kIpv6Group{"ipv6",
                       0,
                       {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa1, 0xb2, 0xc3, 0xd4},
                       {0x33, 0x33, 0xa1, 0xb2, 0xc3, 0xd4}};

class UdGroups : public UdWire, public ::testing::WithParamInterface<Group> {
 protected:
  static ibv_gid gid_of(const Group& group) {
    ibv_gid gid;
    std::ranges::copy(group.gid, gid.raw);
    return gid;
  }
  // h0 sends to the group; h1's QP is a member.
  void run_group(const Group& group) {
    run_connected(
        [&](Endpoint& end) {
          ibv_ah_attr path{};
          path.is_global = 1;
          path.port_num = 1;
          path.grh = {gid_of(group), 0, group.gid_index, 3, 0};
          ibv_ah* ah = ibv_create_ah(end.pd, &path);
          ASSERT_NE(ah, nullptr);
          meet(0);
          auto wr = end.request(IBV_WR_SEND, 0, 10);
          wr.wr.ud.ah = ah;
          wr.wr.ud.remote_qpn = 0xffffff;
          complete(end, wr);
          EXPECT_EQ(ibv_destroy_ah(ah), 0);
        },
        [&](Endpoint& end) {
          const auto gid = gid_of(group);
          ASSERT_EQ(ibv_attach_mcast(end.qp, &gid, 0), 0);
          ASSERT_EQ(end.receive(0, 100), 0);
          meet(1);
          EXPECT_EQ(end.completion().byte_len, kGrh + 10);
          ASSERT_EQ(ibv_detach_mcast(end.qp, &gid, 0), 0);
        },
        ud(group.gid_index), ud(group.gid_index));
  }
};

TEST_P(UdGroups, HaveAnAddressOfTheirOwn) {
  const auto& group = GetParam();
  run_group(group);
  const auto packets = sent();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(packets[0].headers.bth.destination.value, 0xffffffu);
  EXPECT_EQ(addresses(0).destination_mac, group.mac);
  EXPECT_EQ(addresses(0).destination, group.gid);
  EXPECT_EQ(addresses(0).hop_limit, 3);
}
INSTANTIATE_TEST_SUITE_P(Of, UdGroups, ::testing::Values(kIpv4Group, kIpv6Group),
                         [](const auto& info) { return std::string(info.param.name); });

// Frames that mix addresses of a group and of a host.
struct Mixture {
  const char* name;
  bool group_mac, group_ip, group_qpn;
  Opcode opcode = Opcode::ud_send_only;
};
void PrintTo(const Mixture& mixture, std::ostream* out) { *out << mixture.name; }

class UdMixture : public UdWire, public ::testing::WithParamInterface<Mixture> {};

TEST_P(UdMixture, IsNotOurs) {
  const auto& mixture = GetParam();
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        complete(end, end.request(IBV_WR_SEND, 0, 10));
        pass(0, kSettled);
        auto at = addresses(0);
        auto headers = sent().front().headers;
        if (mixture.group_mac) at.destination_mac = kIpv4Group.mac;
        if (mixture.group_ip) at.destination = kIpv4Group.gid;
        if (mixture.group_qpn) headers.bth.destination = {0xffffff};
        headers.bth.opcode = mixture.opcode;
        headers.reth = roce::Reth{end.request(IBV_WR_SEND, 0, 0).sg_list->addr, {1}, 8};
        forge(1, at, headers, 8);
        pass(0, kSettled);
        EXPECT_EQ(host(1).nic().counters().rx.not_ours, 1u);
        complete(end, end.request(IBV_WR_SEND, 0, 11));
      },
      [&](Endpoint& end) {
        ibv_gid gid;
        std::ranges::copy(kIpv4Group.gid, gid.raw);
        ASSERT_EQ(ibv_attach_mcast(end.qp, &gid, 0), 0);
        for (int i = 0; i < 3; ++i) ASSERT_EQ(end.receive(0, 100), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 10);
        EXPECT_EQ(end.completion().byte_len, kGrh + 11);
        ASSERT_EQ(ibv_detach_mcast(end.qp, &gid, 0), 0);
      },
      ud(), ud());
}
INSTANTIATE_TEST_SUITE_P(Of, UdMixture,
                         ::testing::Values(Mixture{"hosts_address_groups_qpn", false, false, true},
                                           Mixture{"groups_mac_alone", true, false, false},
                                           Mixture{"groups_mac_and_qpn", true, false, true},
                                           Mixture{"groups_ip_alone", false, true, false},
                                           Mixture{"groups_ip_and_qpn", false, true, true},
                                           Mixture{"groups_address_hosts_qpn", true, true, false},
                                           Mixture{"uc_to_the_group", true, true, true, Opcode::uc_write_only},
                                           Mixture{"rc_to_the_group", true, true, true, Opcode::write_only}),
                         [](const auto& info) { return std::string(info.param.name); });

// --- Hostile datagrams to a QP: dropped and counted; the receive stays posted for a valid one.
struct Hostile {
  const char* name;
  Opcode opcode;
  std::uint32_t payload;
  Counted counted;
  std::uint32_t qkey_change = 0;
  std::uint32_t qpn_change = 0;
  std::uint16_t pkey = 0xffff;
};
void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class UdHostile : public UdWire, public ::testing::WithParamInterface<Hostile> {};

TEST_P(UdHostile, IsDroppedAndCounted) {
  const auto& hostile = GetParam();
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        complete(end, end.request(IBV_WR_SEND, 0, 10));
        pass(0, kSettled);
        auto headers = sent().front().headers;
        headers.bth.opcode = hostile.opcode;
        headers.bth.pkey = hostile.pkey;
        headers.bth.destination.value ^= hostile.qpn_change;
        headers.deth->qkey ^= hostile.qkey_change;
        headers.reth = roce::Reth{0, {1}, hostile.payload};
        headers.aeth = roce::Aeth{};
        forge(1, headers, hostile.payload);
        pass(0, kSettled);
        EXPECT_EQ(counter(hostile.counted), 1u);
        complete(end, end.request(IBV_WR_SEND, 0, 11));
      },
      [&](Endpoint& end) {
        for (std::uint64_t id = 0; id < 2; ++id) ASSERT_EQ(end.receive(0, kGrh + 4096, id), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 10);
        const auto wc = end.completion();
        EXPECT_EQ(wc.byte_len, kGrh + 11);
        EXPECT_EQ(wc.wr_id, 1u);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
      },
      ud(), ud());
  for (const auto& frame : wire()) EXPECT_EQ(frame.from, 0u) << "an answer";
}
INSTANTIATE_TEST_SUITE_P(
    Of, UdHostile,
    ::testing::Values(Hostile{"rc_send", Opcode::send_only, 64, Counted::wrong_state},
                      Hostile{"rc_read", Opcode::read_request, 0, Counted::wrong_state},
                      Hostile{"rc_ack", Opcode::acknowledge, 0, Counted::wrong_state},
                      Hostile{"uc_write", Opcode::uc_write_only, 64, Counted::wrong_state},
                      Hostile{"beyond_mtu", Opcode::ud_send_only, 4100, Counted::unfit},
                      Hostile{"qkey", Opcode::ud_send_only_imm, 64, Counted::bad_qkey, 1},
                      Hostile{"controlled_qkey", Opcode::ud_send_only, 64, Counted::bad_qkey, 0x80000000},
                      Hostile{"nobody", Opcode::ud_send_only, 64, Counted::unknown_qp, 0, 0x800},
                      Hostile{"bad_pkey", Opcode::ud_send_only, 64, Counted::bad_pkey, 0, 0, 0x8001}),
    [](const auto& info) { return std::string(info.param.name); });

// Any sender that knows the Q_Key is accepted.
TEST_F(UdWire, AnyHostIsHeard) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        complete(end, end.request(IBV_WR_SEND, 0, 10));
        pass(0, kSettled);
        auto addresses = addresses_to(1);
        ++addresses.source.back();
        forge(1, addresses, sent().front().headers, 11);
      },
      [&](Endpoint& end) {
        for (std::uint64_t id = 0; id < 2; ++id) ASSERT_EQ(end.receive(0, kGrh + 4096, id), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, kGrh + 10);
        EXPECT_EQ(end.completion().byte_len, kGrh + 11);
        EXPECT_EQ(counter(Counted::wrong_path), 0u);
      },
      ud(), ud());
}

}  // namespace
}  // namespace rnicsim::testing::ud_test
