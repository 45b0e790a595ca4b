// SPDX-License-Identifier: Apache-2.0
// Raw packets over two NICs: frames are sent as posted; flows and receive-side scaling select receivers; errors are
// refused.
#include <boost/crc.hpp>
#include <cstring>
#include <set>

#include "model/nic/packets/packet.h"
#include "model/nic/personality/flows.h"
#include "model/nic/queues/command_unit.h"
#include "model/roce/opcode.h"
#include "model/roce/packet.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CommandOpcode;
using abi::CommandStatus;
using abi::CqeSyndrome;
using abi::SendOpcode;

constexpr std::uint32_t kRss = 0x20;  // number of an RSS context
constexpr std::uint32_t kFlow = 3;
constexpr std::uint32_t kCounter = 4;
constexpr std::uint32_t kEthernetIpUdp = 14 + 20 + 8;
constexpr std::uint32_t kUdpChecksumAt = 14 + 20 + 6, kIpChecksumAt = 14 + 10;

// An IPv4 frame to node `to`, without checksums.
std::vector<std::byte> udp_frame(std::uint8_t to, std::uint16_t port, std::size_t payload = 32) {
  std::vector<std::byte> frame(kEthernetIpUdp + payload);
  const auto put = [&frame](std::size_t at, std::initializer_list<unsigned> bytes) {
    for (const auto byte : bytes) frame[at++] = std::byte(byte);
  };
  const auto word = [](std::size_t value) { return std::array{unsigned(value >> 8), unsigned(value & 0xff)}; };
  const auto ip = word(20 + 8 + payload), udp = word(8 + payload), destination = word(port);
  put(0, {0, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, 9, 0x08, 0x00});
  put(14, {0x45, 0, ip[0], ip[1], 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 9, 10, 0, 0, to});
  put(34, {0x30, 0x39, destination[0], destination[1], udp[0], udp[1], 0, 0});
  for (std::size_t i = 0; i < payload; ++i) frame[kEthernetIpUdp + i] = std::byte(i * 7 + port);
  return frame;
}

class Raw : public Pair {
 protected:
  void SetUp() override { build({}); }
  void build(const NicParams& params) {
    Pair::build(params);
    for (auto* node : {&a(), &b()}) make_raw(*node);
  }
  static void make_raw(Node& node, std::uint8_t flags = 0) {
    ASSERT_EQ(node.destroy_qp(), CommandStatus::ok);
    ASSERT_EQ(node.create_qp_anew([flags](abi::Qpc& c) {
      c.transport = abi::Transport::raw;
      c.flags |= flags;
    }),
              CommandStatus::ok);
    abi::Qpc port;
    port.port = 1;
    ASSERT_EQ(node.modify(abi::QpState::init, abi::qp_attr::kPort, port), CommandStatus::ok);
    ASSERT_EQ(node.modify(abi::QpState::rtr, 0), CommandStatus::ok);
    ASSERT_EQ(node.modify(abi::QpState::rts, 0), CommandStatus::ok);
  }

  static abi::CreateFlow flow(std::uint32_t number = kFlow, abi::FlowKind kind = abi::FlowKind::all_default) {
    abi::CreateFlow flow;
    flow.header.opcode = std::uint16_t(CommandOpcode::create_flow);
    flow.header.object = number;
    flow.qpn = kQpn;
    flow.kind = kind;
    return flow;
  }
  static abi::CreateFlow flow_of_port(std::uint16_t port, std::uint32_t number = kFlow) {
    auto flow = Raw::flow(number, abi::FlowKind::normal);
    flow.conditions_count = 1;
    flow.conditions[0].header = abi::FlowHeader::udp;
    flow.conditions[0].value[0] = static_cast<std::uint8_t>(port >> 8);
    flow.conditions[0].value[1] = static_cast<std::uint8_t>(port);
    flow.conditions[0].mask[0] = flow.conditions[0].mask[1] = 0xff;
    return flow;
  }
  static abi::CommandHeader of(CommandOpcode opcode, std::uint32_t object) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = object;
    return header;
  }
  void post(const std::vector<std::byte>& frame, std::uint32_t flags = abi::ControlSegment::kSignaled) {
    std::ranges::copy(frame, a().host.at(a().buffer));
    a().post_send({.opcode = SendOpcode::send, .length = static_cast<std::uint32_t>(frame.size()), .flags = flags});
  }
  std::vector<std::byte> received(std::size_t bytes) {
    const auto* at = b().host.at(b().buffer + kReceiveAt);
    return {at, at + bytes};
  }
  void post_receive(std::uint32_t bytes = 2048) { b().post_receive(b().buffer + kReceiveAt, bytes); }

  static constexpr std::uint64_t kReceiveAt = 65536;
};

TEST_F(Raw, AFrameArrivesAsItWasPosted) {
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  for (const std::size_t payload : {18u, 32u, 1400u, 8900u}) {
    const auto frame = udp_frame(2, 77, payload);
    post_receive(9018);
    post(frame);
    EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
    const auto cqe = b().wait(kReceiveCqn);
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe->byte_count, frame.size());
    EXPECT_EQ(cqe->opcode_owner >> 4, int(abi::CqeOpcode::receive_send));
    EXPECT_EQ(cqe->flags & (abi::Cqe::kChecksumsRight | abi::Cqe::kFlowTag | abi::Cqe::kGrh), 0);
    EXPECT_EQ(received(frame.size()), frame);
  }
  EXPECT_EQ(b().nic.counters().raw.frames, 4u);
  EXPECT_EQ(b().nic.counters().raw.no_flow, 0u);
}

TEST_F(Raw, AShortFrameIsPadded) {
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  auto frame = udp_frame(2, 77, 1);
  post_receive();
  post(frame);
  const auto cqe = b().wait(kReceiveCqn);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->byte_count, 60u);
  frame.resize(60);
  EXPECT_EQ(received(60), frame);
}

TEST_F(Raw, ALengthThatIsNoFramesCompletesInError) {
  for (const auto& [bytes, status] : {std::pair{13u, CqeSyndrome::local_length_error},
                                      {9019u, CqeSyndrome::local_length_error},
                                      {14u, CqeSyndrome::success},
                                      {9018u, CqeSyndrome::success}}) {
    build({});
    a().post_send({.opcode = SendOpcode::send, .length = bytes});
    EXPECT_EQ(a().wait_status(kSendCqn), status) << bytes;
  }
}

TEST_F(Raw, AnotherOpcodeIsNoneOfItsTransport) {
  a().post_send({.opcode = SendOpcode::write, .length = 64, .remote = at_b()});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::local_qp_operation_error);
}

TEST_F(Raw, ChecksumsAreFilledInWhenAskedFor) {
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  post_receive();
  post(udp_frame(2, 77), abi::ControlSegment::kSignaled | abi::ControlSegment::kChecksums);
  const auto cqe = b().wait(kReceiveCqn);
  ASSERT_TRUE(cqe);
  EXPECT_NE(cqe->flags & abi::Cqe::kChecksumsRight, 0);
  const auto frame = received(kEthernetIpUdp + 32);
  EXPECT_NE(frame[kUdpChecksumAt], std::byte{});
  EXPECT_NE(frame[kIpChecksumAt], std::byte{});
}

TEST_F(Raw, WithoutAFlowAFrameIsDropped) {
  post_receive();
  post(udp_frame(2, 77));
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
  EXPECT_EQ(b().nic.counters().raw.no_flow, 1u);
}

TEST_F(Raw, AFlowTakesWhatMeetsItsConditions) {
  ASSERT_EQ(b().command(flow_of_port(77)), CommandStatus::ok);
  post_receive();
  post(udp_frame(2, 78));
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
  post(udp_frame(2, 77));
  EXPECT_TRUE(b().wait(kReceiveCqn));
  ASSERT_EQ(b().command(of(CommandOpcode::destroy_flow, kFlow)), CommandStatus::ok);
  post_receive();
  post(udp_frame(2, 77));
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
  EXPECT_EQ(b().nic.counters().raw.no_flow, 2u);
}

TEST_F(Raw, AFlowsTagComesWithTheFrame) {
  auto tagged = flow_of_port(77);
  tagged.flags = abi::CreateFlow::kTag;
  tagged.tag = 0x1234567u;
  ASSERT_EQ(b().command(tagged), CommandStatus::ok);
  post_receive();
  post(udp_frame(2, 77));
  const auto cqe = b().wait(kReceiveCqn);
  ASSERT_TRUE(cqe);
  EXPECT_NE(cqe->flags & abi::Cqe::kFlowTag, 0);
  EXPECT_EQ(cqe->immediate, 0x1234567u);
}

TEST_F(Raw, AFlowCounts) {
  ASSERT_EQ(b().command(of(CommandOpcode::create_counter, kCounter)), CommandStatus::ok);
  auto counted = flow_of_port(77);
  counted.flags = abi::CreateFlow::kCount | abi::CreateFlow::kDrop;
  counted.counter = kCounter;
  ASSERT_EQ(b().command(counted), CommandStatus::ok);
  post_receive();
  for (int i = 0; i < 3; ++i) post(udp_frame(2, 77));
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
  ASSERT_EQ(b().command(of(CommandOpcode::query_counter, kCounter)), CommandStatus::ok);
  EXPECT_EQ(b().output<abi::QueryCounter>().packets, 3u);
  EXPECT_EQ(b().output<abi::QueryCounter>().bytes, 3u * (kEthernetIpUdp + 32));
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_counter, kCounter)), CommandStatus::resource_busy);
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_flow, kFlow)), CommandStatus::ok);
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_counter, kCounter)), CommandStatus::ok);
}

TEST_F(Raw, WhatFitsNoReceiveIsDropped) {
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  post_receive(80);
  post(udp_frame(2, 77, 80));
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
  EXPECT_EQ(b().nic.counters().engine.silently_dropped, 1u);
  post(udp_frame(2, 77, 80 - kEthernetIpUdp));
  EXPECT_TRUE(b().wait(kReceiveCqn)) << "the receive was still there";
  post(udp_frame(2, 77));
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
  EXPECT_EQ(b().nic.counters().engine.out_of_buffer, 1u);
}

TEST_F(Raw, ATagAndTheFcsWhereTheQueuePairWantsThem) {
  const auto plain = udp_frame(2, 77);
  auto tagged = plain;
  const std::byte tag[] = {std::byte{0x81}, std::byte{0}, std::byte{0x61}, std::byte{0x23}};
  tagged.insert(tagged.begin() + 12, std::begin(tag), std::end(tag));
  for (const std::uint8_t flags :
       {abi::Qpc::kStripVlan, abi::Qpc::kScatterFcs, std::uint8_t(abi::Qpc::kStripVlan | abi::Qpc::kScatterFcs)}) {
    Pair::build({});
    make_raw(a());
    make_raw(b(), flags);
    ASSERT_EQ(b().command(flow_of_port(77)), CommandStatus::ok);
    post_receive();
    post(tagged);
    const auto cqe = b().wait(kReceiveCqn);
    ASSERT_TRUE(cqe);
    const bool strips = (flags & abi::Qpc::kStripVlan) != 0, scatters = (flags & abi::Qpc::kScatterFcs) != 0;
    EXPECT_EQ((cqe->flags & abi::Cqe::kVlan) != 0, strips);
    EXPECT_EQ(cqe->vlan, strips ? 0x6123 : 0);
    const auto& frame = strips ? plain : tagged;
    ASSERT_EQ(cqe->byte_count, frame.size() + (scatters ? 4 : 0));
    EXPECT_EQ(received(frame.size()), frame);
    if (!scatters) continue;
    boost::crc_32_type crc;
    crc.process_bytes(tagged.data(), tagged.size());
    const auto with_fcs = received(frame.size() + 4);
    EXPECT_EQ(std::to_integer<unsigned>(with_fcs[frame.size()]), crc.checksum() & 0xff);
    EXPECT_EQ(std::to_integer<unsigned>(with_fcs.back()), crc.checksum() >> 24);
  }
}

TEST_F(Raw, ThoseAreOfRawQueuePairsAlone) {
  Pair::build({});
  ASSERT_EQ(a().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(a().create_qp_anew([](abi::Qpc& c) { c.flags |= abi::Qpc::kStripVlan; }), CommandStatus::bad_parameter);
}

// WQE of a TSO: control, TSO segment, headers, one data segment.
std::vector<std::byte> tso_wqe(std::uint16_t index, std::uint16_t mss, const std::vector<std::byte>& headers,
                               std::uint64_t address, std::uint32_t bytes) {
  std::vector<std::byte> wqe(256);
  abi::ControlSegment control;
  control.opcode = SendOpcode::tso;
  control.wqe_index = index;
  control.qpn_flags = kQpn << 8 | abi::ControlSegment::kSignaled | abi::ControlSegment::kChecksums;
  abi::TsoSegment tso;
  tso.mss = mss;
  tso.header_bytes = static_cast<std::uint16_t>(headers.size());
  abi::DataSegment data;
  data.byte_count = bytes;
  data.lkey = kKey;
  data.address = address;
  std::size_t at = 16;
  const auto put = [&](const void* from, std::size_t size) {
    std::memcpy(wqe.data() + at, from, size);
    at += (size + 15) / 16 * 16;
  };
  put(&tso, sizeof tso);
  if (!headers.empty()) put(headers.data(), headers.size());
  put(&data, sizeof data);
  control.segments = static_cast<std::uint8_t>(at / 16);
  std::memcpy(wqe.data(), &control, sizeof control);
  wqe.resize((at + 63) / 64 * 64);
  return wqe;
}

std::vector<std::byte> tcp_headers() {
  auto headers = udp_frame(2, 77, 12);
  headers[14 + 9] = std::byte{6};
  headers[34 + 12] = std::byte{0x50};
  headers[34 + 13] = std::byte{0x89};  // CWR, PSH, FIN
  return headers;
}

TEST_F(Raw, ATsoLeavesInSegments) {
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  for (int i = 0; i < 4; ++i) b().post_receive(b().buffer + kReceiveAt + 4096 * i, 2048);
  a().fill(3);
  a().post_raw(tso_wqe(0, 1000, tcp_headers(), a().buffer, 3500), false);
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  const auto* sent = a().host.at(a().buffer);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto cqe = b().wait(kReceiveCqn);
    ASSERT_TRUE(cqe) << i;
    const std::uint32_t data = i < 3 ? 1000 : 500;
    EXPECT_EQ(cqe->byte_count, 54 + data);
    EXPECT_NE(cqe->flags & abi::Cqe::kChecksumsRight, 0);
    const auto* frame = b().host.at(b().buffer + kReceiveAt + 4096 * i);
    const auto word = [frame](std::size_t at) { return abi::load_be<std::uint16_t>(frame + at); };
    EXPECT_EQ(word(16), 40 + data);
    EXPECT_EQ(word(18), i);
    EXPECT_EQ(word(38) << 16 | word(40), 0u + (std::uint32_t{word(38)} << 16 | 1000 * i));
    EXPECT_EQ(std::to_integer<unsigned>(frame[47]), i == 0 ? 0x80u : i == 3 ? 0x09u : 0u);
    EXPECT_EQ(std::memcmp(frame + 54, sent + 1000 * i, data), 0);
  }
  EXPECT_EQ(a().nic.counters().tx.packets, 4u);
}

TEST_F(Raw, ATsoThatIsNotSoundCompletesInError) {
  const auto headers = tcp_headers();
  const auto bad = [&](std::uint16_t mss, const std::vector<std::byte>& headers, std::uint32_t bytes) {
    build({});
    a().post_raw(tso_wqe(0, mss, headers, a().buffer, bytes), false);
    return a().wait_status(kSendCqn);
  };
  EXPECT_EQ(bad(0, headers, 100), CqeSyndrome::local_qp_operation_error);
  EXPECT_EQ(bad(100, {}, 100), CqeSyndrome::local_qp_operation_error);
  EXPECT_EQ(bad(100, headers, 0), CqeSyndrome::local_length_error);
  EXPECT_EQ(bad(9000, headers, 9000), CqeSyndrome::local_length_error);
  EXPECT_EQ(bad(1000, headers, (1u << 18) + 1), CqeSyndrome::local_length_error);
  EXPECT_EQ(bad(8964, headers, 9000), CqeSyndrome::success);
  EXPECT_EQ(bad(1000, headers, 1u << 18), CqeSyndrome::success);
}

TEST_F(Raw, AfterAFrameWithoutReceiveTheNextOneFindsIts) {
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  for (int round = 0; round < 3; ++round) {
    post(udp_frame(2, 77));
    EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
    post_receive();
    post(udp_frame(2, 77));
    EXPECT_TRUE(b().wait(kReceiveCqn)) << round;
  }
}

// One rule leads to the queue, and another to a table with the same queue.
TEST_F(Raw, AQueueGetsAFrameOnceByWhateverWays) {
  abi::CreateRss rss;
  rss.header.opcode = std::uint16_t(CommandOpcode::create_rss);
  rss.header.object = kRss;
  rss.queues[0] = kQpn;
  ASSERT_EQ(b().command(rss), CommandStatus::ok);
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  auto to_rss = flow();
  to_rss.header.object = kFlow + 1;
  to_rss.qpn = kRss;
  ASSERT_EQ(b().command(to_rss), CommandStatus::ok);
  for (int i = 0; i < 3; ++i) post_receive();
  for (int i = 0; i < 2; ++i) post(udp_frame(2, 77));
  EXPECT_TRUE(b().wait(kReceiveCqn));
  EXPECT_TRUE(b().wait(kReceiveCqn));
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
}

TEST_F(Raw, TheHashSaysWhichQueueGetsAFrame) {
  abi::CreateRss rss;
  rss.header.opcode = std::uint16_t(CommandOpcode::create_rss);
  rss.header.object = kRss;
  rss.fields = rss_field::kDestinationUdp;
  for (std::size_t i = 0; i < sizeof rss.key; ++i) rss.key[i] = static_cast<std::uint8_t>(i * 37 + 11);
  rss.queues[0] = kQpn;
  ASSERT_EQ(b().command(rss), CommandStatus::ok);
  auto to_rss = flow();
  to_rss.qpn = kRss;
  ASSERT_EQ(b().command(to_rss), CommandStatus::ok);
  std::set<std::uint32_t> hashes;
  for (std::uint16_t port = 100; port < 108; ++port) {
    post_receive();
    post(udp_frame(2, port));
    const auto cqe = b().wait(kReceiveCqn);
    ASSERT_TRUE(cqe);
    abi::RawFacts facts;
    std::memcpy(&facts, cqe->inline_data, sizeof facts);
    hashes.insert(facts.rss_hash);
  }
  EXPECT_EQ(hashes.size(), 8u);
  EXPECT_EQ(b().destroy_qp(), CommandStatus::resource_busy);
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_rss, kRss)), CommandStatus::resource_busy);
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_flow, kFlow)), CommandStatus::ok);
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_rss, kRss)), CommandStatus::ok);
  EXPECT_EQ(b().destroy_qp(), CommandStatus::ok);
}

TEST_F(Raw, WithTimingOnlyAFrameFindsItsFlow) {
  NicParams params;
  params.timing_only = true;
  build(params);
  ASSERT_EQ(b().command(flow_of_port(77)), CommandStatus::ok);
  post_receive();
  post(udp_frame(2, 77));
  EXPECT_TRUE(b().wait(kReceiveCqn));
}

TEST_F(Raw, ALookupInTheFlowTableTakesItsTime) {
  const auto arrival = [this](Duration lookup) {
    NicParams params;
    params.raw.lookup = lookup;
    build(params);
    EXPECT_EQ(b().command(flow_of_port(77)), CommandStatus::ok);
    post_receive();
    const auto begin = now();
    post(udp_frame(2, 77));
    EXPECT_TRUE(b().wait(kReceiveCqn));
    return b().host.landed.back().second - begin;
  };
  EXPECT_EQ((arrival(1_us) - arrival(0_ns)).ps, (1_us).ps);
}

TEST_F(Raw, AFrameToItselfComesByTheLoopback) {
  ASSERT_EQ(a().command(flow_of_port(77)), CommandStatus::ok);
  a().post_receive(a().buffer + kReceiveAt, 2048);
  post(udp_frame(1, 77));
  EXPECT_TRUE(a().wait(kReceiveCqn));
  EXPECT_EQ(a().nic.counters().loopback.frames, 1u);
  EXPECT_EQ(a().nic.counters().port.tx_frames, 0u);
}

TEST_F(Raw, AFrameToAGroupComesBackToo) {
  ASSERT_EQ(a().command(flow_of_port(77)), CommandStatus::ok);
  ASSERT_EQ(b().command(flow_of_port(77)), CommandStatus::ok);
  auto frame = udp_frame(2, 77);
  frame[0] = std::byte{1};
  for (const bool blocks : {false, true}) {
    a().post_receive(a().buffer + kReceiveAt, 2048);
    post_receive();
    post(frame);
    EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
    EXPECT_TRUE(b().wait(kReceiveCqn));
    EXPECT_EQ(a().wait(kReceiveCqn, 20_us).has_value(), !blocks);
    if (blocks) break;
    ASSERT_EQ(a().command(of(CommandOpcode::destroy_flow, kFlow)), CommandStatus::ok);
    make_raw(a(), abi::Qpc::kBlockSelfMulticast);
    a().restart();
    ASSERT_EQ(a().command(flow_of_port(77)), CommandStatus::ok);
  }
}

TEST_F(Raw, ARocePacketIsNotARawQueuePairs) {
  ASSERT_EQ(b().command(flow()), CommandStatus::ok);
  post_receive();
  roce::FrameAddresses addresses;
  addresses.destination = Node::gid_of(2);
  addresses.destination_mac[5] = 2;
  const auto packet = Packet::make();
  packet->headers.bth.opcode = roce::Opcode::send_only;
  packet->headers.bth.destination = {kQpn};
  packet->addresses = addresses;
  packet->seal(1, false);
  b().nic.receive(Frame(packet));
  EXPECT_FALSE(b().wait(kReceiveCqn, 20_us));
  EXPECT_EQ(b().nic.counters().engine.wrong_state, 1u);
  EXPECT_EQ(b().nic.counters().raw.frames, 0u);
}

// The opcode that the device uses internally for raw packets is no opcode of the wire.
TEST_F(Raw, TheOpcodeWithinIsNoneOfTheWire) { EXPECT_EQ(roce::find_opcode(0xff), nullptr); }

TEST_F(Raw, WhatIsRefused) {
  EXPECT_EQ(b().command(flow_of_port(1)), CommandStatus::ok);
  EXPECT_EQ(b().command(flow_of_port(1)), CommandStatus::resource_busy) << "the number is taken";
  EXPECT_EQ(b().destroy_qp(), CommandStatus::resource_busy);
  auto nowhere = flow(9);
  nowhere.qpn = kQpn + 1;
  EXPECT_EQ(b().command(nowhere), CommandStatus::bad_parameter);
  auto conditions = flow_of_port(1, 9);
  conditions.kind = abi::FlowKind::sniffer;
  EXPECT_EQ(b().command(conditions), CommandStatus::bad_parameter);
  auto unknown = flow_of_port(1, 9);
  unknown.conditions[0].header = abi::FlowHeader(9);
  EXPECT_EQ(b().command(unknown), CommandStatus::bad_parameter);
  EXPECT_EQ(b().command(flow(9, abi::FlowKind(4))), CommandStatus::bad_parameter);
  auto too_many = flow_of_port(1, 9);
  too_many.conditions_count = abi::CreateFlow::kMostConditions + 1;
  EXPECT_EQ(b().command(too_many), CommandStatus::bad_parameter);
  auto counted = flow(9);
  counted.flags = abi::CreateFlow::kCount;
  counted.counter = 5;
  EXPECT_EQ(b().command(counted), CommandStatus::bad_resource);
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_flow, 9)), CommandStatus::bad_resource);
  EXPECT_EQ(b().command(of(CommandOpcode::query_counter, 9)), CommandStatus::bad_resource);
  EXPECT_EQ(b().command(of(CommandOpcode::destroy_rss, 9)), CommandStatus::bad_resource);
  abi::CreateRss rss;
  rss.header.opcode = std::uint16_t(CommandOpcode::create_rss);
  rss.header.object = kQpn;
  rss.queues[0] = kQpn;
  EXPECT_EQ(b().command(rss), CommandStatus::resource_busy) << "a QP has the number";
  rss.header.object = kRss;
  rss.log_queues = 10;
  EXPECT_EQ(b().command(rss), CommandStatus::bad_parameter);
  rss.log_queues = 1;
  EXPECT_EQ(b().command(rss), CommandStatus::bad_parameter) << "the second queue is none";
  rss.log_queues = 0;
  rss.fields = 1u << 9;
  EXPECT_EQ(b().command(rss), CommandStatus::bad_parameter);
}

TEST_F(Raw, ADeviceWithoutItSaysSo) {
  NicParams params;
  params.capabilities.raw = false;
  Pair::build(params);
  EXPECT_EQ(b().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(b().create_qp_anew([](abi::Qpc& c) { c.transport = abi::Transport::raw; }), CommandStatus::not_supported);
  EXPECT_EQ(b().command(flow()), CommandStatus::not_supported);
  EXPECT_EQ(b().command(of(CommandOpcode::create_counter, 1)), CommandStatus::not_supported);
}

}  // namespace
}  // namespace rnicsim::nic::test
