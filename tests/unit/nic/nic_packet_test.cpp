// SPDX-License-Identifier: Apache-2.0
// A packet by reference: its bytes are written when they are read, which must have no other visible effect.
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/packet.h"
#include "model/nic/packets/receive/flow_table.h"

#include <algorithm>
#include <optional>
#include <random>
#include <sstream>

#include "model/fabric/fault_rules.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "model/roce/icrc.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test::packet {
namespace {

using Bytes = std::vector<std::byte>;

constexpr roce::MacAddress kMac{2, 0, 0, 0, 0, 1};
constexpr roce::MacAddress kGroupMac{1, 0, 0x5e, 1, 2, 3};
roce::Gid ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }
roce::Gid ipv6(std::uint8_t last) { return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}; }
const roce::Gid kGroup{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 129, 2, 3};

Bytes bytes_of(const Frame& frame) {
  Bytes bytes;
  frame.append_to(bytes);
  return bytes;
}
Bytes bytes_of(const Payload& payload) { return {payload.bytes().begin(), payload.bytes().end()}; }

// Packets of every opcode, with random field values, over IPv4 or IPv6.
class AnyPacket {
 public:
  PacketRef make(roce::Opcode opcode, bool v6, std::uint32_t payload_bytes, bool icrc_of_headers_only = false) {
    using namespace roce::header;
    auto packet = Packet::make();
    auto& a = packet->addresses;
    a = {};
    a.source = v6 ? ipv6(2) : ipv4(2);
    a.destination = v6 ? ipv6(1) : ipv4(1);
    a.source_mac = {2, 0, 0, 0, 0, 2};
    a.destination_mac = kMac;
    a.traffic_class = static_cast<std::uint8_t>(random_());
    a.hop_limit = static_cast<std::uint8_t>(random_());
    a.flow_label = number();
    a.source_port = static_cast<std::uint16_t>(random_());
    const auto& row = roce::info(opcode);
    auto& h = packet->headers;
    h = {};
    h.bth = {.opcode = opcode,
             .solicited = coin(),
             .fecn = coin(),
             .becn = coin(),
             .destination = {number()},
             .ack_request = coin(),
             .psn = roce::Psn(number())};
    if (row.has(kDeth)) h.deth = roce::Deth{number(), {number()}};
    if (row.has(kXrceth)) h.xrc_srqn = number();
    if (row.has(kReth)) h.reth = roce::Reth{random_(), {number()}, number()};
    if (row.has(kAtomic)) h.atomic = roce::AtomicEth{random_(), {number()}, random_(), random_()};
    if (row.has(kAeth)) h.aeth = roce::Aeth{static_cast<std::uint8_t>(random_()), number()};
    if (row.has(kAtomicAck)) h.atomic_ack = random_();
    if (row.has(kImmediate)) h.immediate = number();
    if (row.has(kInvalidate)) h.invalidate = roce::Rkey{number()};
    Payload payload(payload_bytes);
    std::ranges::generate(payload.writable(), [&] { return static_cast<std::byte>(random_()); });
    packet->put(std::move(payload));
    packet->seal(random_(), icrc_of_headers_only);
    return packet;
  }

  static std::vector<roce::Opcode> opcodes() {
    std::vector<roce::Opcode> all;
    for (int code = 0; code < 256; ++code)
      if (const auto* row = roce::find_opcode(static_cast<std::uint8_t>(code))) all.push_back(row->opcode);
    return all;
  }

 private:
  std::uint32_t number() { return static_cast<std::uint32_t>(random_()); }
  bool coin() { return random_() % 2 != 0; }

  std::mt19937_64 random_{5};
};

TEST(Packet, IsWrittenWhenSomebodyLooks) {
  AnyPacket any;
  for (const auto opcode : AnyPacket::opcodes())
    for (const bool v6 : {false, true})
      for (const std::uint32_t payload : {0, 1, 2, 3, 64}) {
        const auto packet = any.make(opcode, v6, payload);
        const Frame frame(packet);
        EXPECT_FALSE(frame.written());
        const auto size = frame.size();
        EXPECT_EQ(frame.destination_mac(), kMac);
        EXPECT_FALSE(frame.written());
        const auto bytes = bytes_of(frame);
        EXPECT_TRUE(frame.written());
        ASSERT_EQ(bytes.size(), size);
        const auto parsed = roce::parse_frame(bytes, bytes.size());
        ASSERT_EQ(parsed.error, roce::ParseError::none);
        EXPECT_EQ(parsed.headers, packet->headers);
        EXPECT_EQ(parsed.payload_offset, frame.header_bytes());
        EXPECT_EQ(parsed.payload_bytes, payload);
        const std::span all(bytes);
        const auto crc =
            roce::icrc(all.first(frame.header_bytes()).subspan(roce::kEthernetBytes),
                       all.subspan(frame.header_bytes(), size - frame.header_bytes() - roce::kIcrcBytes), {});
        for (std::size_t i = 0; i < roce::kIcrcBytes; ++i)
          EXPECT_EQ(bytes[size - roce::kIcrcBytes + i], std::byte(crc >> (8 * i)));
      }
}

TEST(Packet, AVlanTagIsPartOfTheHeader) {
  AnyPacket any;
  for (const bool v6 : {false, true}) {
    const auto packet = any.make(roce::Opcode::write_only, v6, 10);
    const auto plain = Frame(packet).size();
    packet->addresses.vlan = 100;
    packet->addresses.service_level = 5;
    packet->seal(1, false);
    Frame frame(packet);
    EXPECT_EQ(frame.tag().bits(), 0xa064);
    ASSERT_EQ(frame.size(), plain + roce::kVlanTagBytes);
    const auto bytes = bytes_of(frame);
    const auto parsed = roce::parse_frame(bytes, bytes.size());
    ASSERT_EQ(parsed.error, roce::ParseError::none);
    EXPECT_EQ(parsed.addresses.vlan, 100);
    EXPECT_EQ(parsed.addresses.service_level, 5);
    EXPECT_EQ(parsed.headers, packet->headers);
    const std::span all(bytes);
    const auto link = roce::link_header_bytes(all);
    const auto crc = roce::icrc(all.first(frame.header_bytes()).subspan(link),
                                all.subspan(frame.header_bytes(), frame.size() - frame.header_bytes() - 4), {});
    EXPECT_EQ(bytes[frame.size() - 4], std::byte(crc & 0xff));
    // The same frame, parsed from its bytes.
    const auto other = Frame::of(Payload::copy_of(bytes));
    EXPECT_EQ(other.tag().bits(), frame.tag().bits());
    EXPECT_EQ(other.traffic_class(), frame.traffic_class());
  }
}

TEST(Packet, TheNextOneInItsMemoryIsAnother) {
  AnyPacket any;
  const void* memory = nullptr;
  Bytes first;
  {
    const Frame frame(any.make(roce::Opcode::write_only, false, 10));
    memory = frame.as<Packet>();
    first = bytes_of(frame);
  }
  const Frame frame(any.make(roce::Opcode::write_only, false, 10));
  EXPECT_EQ(frame.as<Packet>(), memory);
  EXPECT_FALSE(frame.written());
  EXPECT_NE(bytes_of(frame), first);
}

TEST(Packet, OneWithAFlippedBitIsBytesAlone) {
  AnyPacket any;
  const Frame original(any.make(roce::Opcode::ud_send_only, true, 5));
  const auto before = bytes_of(Frame(any.make(roce::Opcode::ud_send_only, true, 5)));
  const auto bytes = bytes_of(original);
  for (std::uint32_t bit = 0; bit < original.size() * 8; ++bit) {
    Frame damaged = original;
    fabric::flip_bit(damaged, bit);
    EXPECT_EQ(damaged.as<Packet>(), nullptr);
    EXPECT_EQ(damaged.id(), original.id());
    auto expected = bytes;
    expected[bit / 8] ^= std::byte(1u << bit % 8);
    ASSERT_EQ(bytes_of(damaged), expected);
    ASSERT_EQ(bytes_of(original), bytes);
  }
  EXPECT_NE(original.as<Packet>(), nullptr);
}

// --- Results of the receive pipeline.

class ByReference : public ::testing::Test {
 protected:
  ByReference() {
    sc_core::sc_get_curr_simcontext()->reset();
    gids_.set(0, {ipv6(1), kMac, true});
    gids_.set(3, {ipv4(1), kMac, true});
  }
  std::vector<PacketIn> take(PacketRx& rx, const Frame& frame) {
    packets_.clear();
    rx.receive({frame});
    return std::move(packets_);
  }
  std::unique_ptr<PacketRx> receiver(const char* name, IcrcRule icrc) {
    auto rx = std::make_unique<PacketRx>(name, PacketRxParams{}, gids_, groups_, icrc);
    rx->packet.bind([this](PacketIn&& packet) { packets_.push_back(std::move(packet)); });
    return rx;
  }
  static void expect_same(const PacketIn& a, const PacketIn& b) {
    EXPECT_EQ(a.headers(), b.headers());
    EXPECT_EQ(bytes_of(a.payload()), bytes_of(b.payload()));
    EXPECT_EQ(bytes_of(a.grh), bytes_of(b.grh));
    EXPECT_EQ(a.packet->addresses.source, b.packet->addresses.source);
    EXPECT_EQ(a.destination, b.destination);
    EXPECT_EQ(a.gid_index, b.gid_index);
  }

  GidTable gids_{4};
  MulticastTable groups_{{.groups = 4, .of_a_group = 4, .attached = 8}};
  std::vector<PacketIn> packets_;
};

TEST_F(ByReference, IsWhatParsingGives) {
  AnyPacket any;
  const auto lazy = receiver("lazy", {});
  const auto always = receiver("always", {.always = true});
  for (const auto opcode : AnyPacket::opcodes())
    for (const bool v6 : {false, true})
      for (const std::uint32_t payload : {0, 3, 61}) {
        const Frame frame(any.make(opcode, v6, payload));
        const auto taken = take(*lazy, frame);
        EXPECT_FALSE(frame.written());
        const auto checked = take(*always, frame);
        EXPECT_TRUE(frame.written());
        const auto parsed = take(*lazy, Frame::of(Payload::copy_of(bytes_of(frame))));
        ASSERT_EQ(taken.size(), 1u);
        ASSERT_EQ(checked.size(), 1u);
        ASSERT_EQ(parsed.size(), 1u);
        expect_same(taken[0], checked[0]);
        expect_same(taken[0], parsed[0]);
        EXPECT_EQ(taken[0].packet->id(), frame.id());
        EXPECT_EQ(checked[0].packet->id(), frame.id());
        EXPECT_EQ(taken[0].grh.size(), roce::info(opcode).transport == roce::Transport::ud ? roce::kGrhBytes : 0);
        EXPECT_EQ(taken[0].payload().bytes().data(), frame.payload().bytes().data()) << "payload is shared";
      }
}

TEST_F(ByReference, WhatIsForAnotherIsDropped) {
  AnyPacket any;
  for (const auto& rx : {receiver("lazy", {}), receiver("always", {.always = true})}) {
    auto to_another = any.make(roce::Opcode::send_only, false, 8);
    to_another->addresses.destination = ipv4(9);
    EXPECT_TRUE(take(*rx, Frame(to_another)).empty());
    auto of_another_partition = any.make(roce::Opcode::send_only, false, 8);
    of_another_partition->headers.bth.pkey = 0x8001;
    EXPECT_TRUE(take(*rx, Frame(of_another_partition)).empty());
    EXPECT_EQ(rx->counters().not_ours, 1u);
    EXPECT_EQ(rx->counters().bad_pkey, 1u);
    EXPECT_EQ(rx->counters().packets, 0u);
  }
}

TEST_F(ByReference, EachMemberOfAGroupGetsItsCopy) {
  for (const std::uint32_t qpn : {0x40, 0x12}) ASSERT_TRUE(groups_.attach(kGroup, {qpn}));
  AnyPacket any;
  const auto rx = receiver("rx", {});
  auto packet = any.make(roce::Opcode::ud_send_only, false, 9);
  packet->headers.bth.destination = {roce::kMulticastQpn};
  packet->addresses.destination = kGroup;
  packet->addresses.destination_mac = kGroupMac;
  const Frame frame(packet);
  const auto copies = take(*rx, frame);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].destination.value, 0x40u);
  EXPECT_EQ(copies[1].destination.value, 0x12u);
  EXPECT_EQ(packet->headers.bth.destination.value, roce::kMulticastQpn) << "the packet's own stay";
  for (const auto& copy : copies) EXPECT_EQ(copy.payload().bytes().data(), frame.payload().bytes().data());
}

TEST_F(ByReference, AnIcrcOfHeadersIsRightWhereItIsTheRule) {
  AnyPacket any;
  const auto other = receiver("other", {.always = true});
  const auto same = receiver("same", {.headers_only = true, .always = true});
  const Frame frame(any.make(roce::Opcode::send_only, false, 8, true));
  EXPECT_EQ(take(*same, frame).size(), 1u);
  EXPECT_TRUE(take(*other, frame).empty());
  EXPECT_EQ(other->counters().rx_icrc_encapsulated, 1u);
}

TEST(PacketTx, WritesWhatItSendsIfItAlwaysMakesTheIcrc) {
  GidTable gids(1);
  const MulticastTable groups({});
  gids.set(0, {ipv4(2), kMac, true});
  for (const bool always : {false, true}) {
    const FlowTable flows({});
    PacketTx tx({}, gids, groups, flows, {.always = always});
    std::optional<bool> written;
    tx.frame.bind([&](Frame&& frame, Duration) { written = frame.written(); });
    tx.send({.source = {1}, .gid_index = 0, .packet = Packet::make()});
    EXPECT_EQ(written, always);
  }
}

// --- The same traffic on NICs that write packet bytes always, and only when they are read.

class AllCounters : public CounterVisitor {
 public:
  void counter(const char* name, const Counter& value, const char*, const char*) override {
    out << name << ' ' << value << '\n';
  }
  std::ostringstream out;

 protected:
  void enter(const char* name) override { out << name << ":\n"; }
  void leave() override {}
};

class EitherWay : public Pair {
 protected:
  struct Seen {
    std::vector<std::pair<Duration, Bytes>> wire;
    std::string counters;
    Bytes memory;
    std::vector<std::uint64_t> completions;
    bool operator==(const Seen&) const = default;
  };

  // READs, WRITEs and SENDs, with losses; then damaged frames.
  Seen traffic(const NicParams& params) {
    using enum abi::SendOpcode;
    build(params);
    Seen seen;
    std::vector<Frame> kept;
    drop() = [&](const Frame& frame) {
      seen.wire.emplace_back(now(), bytes_of(frame));
      kept.push_back(frame);
      return seen.wire.size() % 9 == 4;
    };
    connect(3, [](abi::Qpc& c) {
      c.timeout = 4;
      c.retry_count = 7;
    });
    a().fill(1);
    b().fill(2);
    for (const std::uint32_t length : {1u, 4095u, 4097u, 9001u}) {
      b().post_receive(b().buffer + 50'000, 10'000);
      a().post_send({.opcode = write, .length = length, .remote = at_b(100'000 + length)});
      a().post_send({.opcode = read, .length = length, .remote = at_b(200'000), .address = a().buffer + 300'000});
      a().post_send({.opcode = send, .length = length});
      a().post_send({.opcode = write, .length = 64, .remote = at_b(400'000)});
      for (int i = 0; i < 4; ++i) complete(seen, a(), kSendCqn);
      complete(seen, b(), kReceiveCqn);
    }
    const auto damaged = kept.size();
    for (std::size_t i = 0; i < damaged; ++i) {
      if (kept[i].destination_mac()[5] != 2) continue;
      fabric::flip_bit(kept[i], 350 + static_cast<std::uint32_t>(i));
      b().nic.receive(Frame(kept[i]));
    }
    run(50);
    tell(seen);
    return seen;
  }
  Seen to_itself(const NicParams& params) {
    build(params);
    Seen seen;
    a().connect(a(), 3);
    a().fill(1);
    a().post_send({.opcode = abi::SendOpcode::write, .length = 9001, .remote = Remote{a().buffer + 400'000, kKey}});
    complete(seen, a(), kSendCqn);
    tell(seen);
    return seen;
  }
  static NicParams with_icrc(const char* icrc, bool timing_only) {
    NicParams params;
    params.icrc = icrc;
    params.timing_only = timing_only;
    return params;
  }

 private:
  static void complete(Seen& seen, Node& node, std::uint32_t cqn) {
    const auto cqe = node.wait(cqn);
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe->syndrome, abi::CqeSyndrome::success);
    seen.completions.insert(seen.completions.end(),
                            {cqe->wqe_counter, cqe->byte_count, cqe->timestamp, std::uint64_t(cqe->syndrome)});
  }
  void tell(Seen& seen) {
    AllCounters counters;
    for (auto* node : {&a(), &b()}) {
      node->nic.counters().describe(counters);
      seen.memory.insert(seen.memory.end(), node->host.at(node->buffer),
                         node->host.at(node->buffer) + Node::kBufferBytes);
    }
    seen.counters = counters.out.str();
  }
};

TEST_F(EitherWay, NothingIsDifferent) {
  for (const bool timing_only : {false, true}) {
    const auto lazy = traffic(with_icrc("lazy", timing_only));
    const auto always = traffic(with_icrc("always", timing_only));
    EXPECT_EQ(lazy.wire, always.wire);
    EXPECT_EQ(lazy.completions, always.completions);
    EXPECT_EQ(lazy.counters, always.counters);
    EXPECT_EQ(lazy.memory, always.memory);
    EXPECT_GT(lazy.wire.size(), 40u);
    EXPECT_EQ(lazy.completions.size(), 4u * 5 * 4);
    EXPECT_GT(b().nic.counters().rx.rx_icrc_encapsulated, timing_only ? 0u : 20u);
  }
}

TEST_F(EitherWay, NorOnTheWayToItself) {
  EXPECT_EQ(to_itself(with_icrc("lazy", false)), to_itself(with_icrc("always", false)));
  EXPECT_GT(a().nic.counters().loopback.frames, 0u);
}

}  // namespace
}  // namespace rnicsim::nic::test::packet
