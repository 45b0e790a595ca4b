// SPDX-License-Identifier: Apache-2.0
// Messages of the communication manager: captured messages decode to the right values, every field has its own place,
// and no peer's bytes do harm.
#include "model/cm/messages.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "model/roce/packet.h"
#include "sim/replay/capture/capture_file.h"

namespace rnicsim::cm::messages_test {
namespace {

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

constexpr std::size_t kHeader = 24;  // bytes of the MAD header
constexpr std::uint64_t kTransaction = 0x00000002'399321bb;
constexpr std::uint32_t kClient = 0xbb219339, kServer = 0xeafc1738;  // communication IDs

Gid ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }

// --- Messages of two Linux guests (traces/README.md): rping over librdmacm.

class Captured : public ::testing::Test {
 protected:
  static Mad datagram(std::uint32_t number) {
    static const auto frames = sim::replay::read_capture(RNICSIM_SOURCE_DIR "/traces/wire/rxe-two-guests.pcap");
    const auto& frame = frames.at(number - 1).bytes;
    const auto parsed = roce::parse_frame(frame, frame.size());
    Mad mad{};
    EXPECT_EQ(parsed.payload_bytes, mad.size());
    std::copy_n(frame.begin() + parsed.payload_offset, mad.size(), mad.begin());
    return mad;
  }
  // Decodes a message; encoding it again gives the same bytes.
  template <class M>
  static M message(std::uint32_t frame) {
    const Mad mad = datagram(frame);
    const auto envelope = decode(mad);
    EXPECT_TRUE(envelope.has_value());
    if (!envelope) return {};
    EXPECT_EQ(envelope->transaction_id, kTransaction);
    EXPECT_EQ(encode(*envelope), mad);
    EXPECT_TRUE(std::holds_alternative<M>(envelope->message)) << name_of(envelope->message);
    return std::get<M>(envelope->message);
  }
};

TEST_F(Captured, Req) {
  const auto request = message<ConnectRequest>(184);
  EXPECT_EQ(request.local_id, kClient);
  EXPECT_EQ(request.service_id, 0x0000000001061c06u);  // RDMA_PS_TCP, port 7174
  EXPECT_EQ(request.local_ca_guid, 0x505400fffe000002u);
  EXPECT_EQ(request.local_qkey, 0u);
  EXPECT_EQ(request.local_qpn, 0x15u);
  EXPECT_EQ(request.responder_resources, 1);
  EXPECT_EQ(request.local_eecn, 0u);
  EXPECT_EQ(request.initiator_depth, 1);
  EXPECT_EQ(request.remote_eecn, 0u);
  EXPECT_EQ(request.remote_response_timeout, 20);
  EXPECT_EQ(request.transport, TransportService::rc);
  EXPECT_FALSE(request.end_to_end_flow_control);
  EXPECT_EQ(request.starting_psn, 0xb7321du);
  EXPECT_EQ(request.local_response_timeout, 20);
  EXPECT_EQ(request.retry_count, 7);
  EXPECT_EQ(request.pkey, 0xffff);
  EXPECT_EQ(request.path_mtu, 5);
  EXPECT_FALSE(request.rdc_exists);
  EXPECT_EQ(request.rnr_retry_count, 7);
  EXPECT_EQ(request.max_cm_retries, 15);
  EXPECT_FALSE(request.srq);
  EXPECT_EQ(request.extended_transport, 0);
  const RequestedPath& path = request.primary;
  EXPECT_EQ(path.local_lid, 0xffff);
  EXPECT_EQ(path.remote_lid, 0xffff);
  EXPECT_EQ(path.local_gid, ipv4(2));
  EXPECT_EQ(path.remote_gid, ipv4(1));
  // The first 20 bits of the word 65 d3 e0 00 (12.6.5). Wireshark 4.0 shows another value.
  EXPECT_EQ(path.flow_label, 0x65d3eu);
  EXPECT_EQ(path.packet_rate, 0);
  EXPECT_EQ(path.traffic_class, 0);
  EXPECT_EQ(path.hop_limit, 64);
  EXPECT_EQ(path.service_level, 0);
  EXPECT_FALSE(path.subnet_local);
  EXPECT_EQ(path.local_ack_timeout, 19);
  EXPECT_EQ(request.alternate, RequestedPath{});
  // The addresses that rdma_cm puts before the program's private data: IPv4, port 47048, 10.0.0.2 to 10.0.0.1.
  PrivateData<92> expected{};
  const std::uint8_t head[] = {0x00, 0x40, 0xb7, 0xc8};
  std::ranges::copy(head, expected.begin());
  std::copy_n(ipv4(2).begin() + 12, 4, expected.begin() + 16);
  std::copy_n(ipv4(1).begin() + 12, 4, expected.begin() + 32);
  EXPECT_EQ(request.private_data, expected);
}

TEST_F(Captured, Rep) {
  const auto reply = message<ConnectReply>(185);
  EXPECT_EQ(reply.local_id, kServer);
  EXPECT_EQ(reply.remote_id, kClient);
  EXPECT_EQ(reply.local_qkey, 0u);
  EXPECT_EQ(reply.local_qpn, 0x15u);
  EXPECT_EQ(reply.local_eecn, 0u);
  EXPECT_EQ(reply.starting_psn, 0x87a5e2u);
  EXPECT_EQ(reply.responder_resources, 1);
  EXPECT_EQ(reply.initiator_depth, 1);
  EXPECT_EQ(reply.target_ack_delay, 15);
  EXPECT_EQ(reply.failover_accepted, 0);
  EXPECT_FALSE(reply.end_to_end_flow_control);
  EXPECT_EQ(reply.rnr_retry_count, 7);
  EXPECT_FALSE(reply.srq);
  EXPECT_EQ(reply.local_ca_guid, 0x505400fffe000001u);
  EXPECT_EQ(reply.private_data, PrivateData<196>{});
}

TEST_F(Captured, Rtu) {
  const auto ready = message<ReadyToUse>(186);
  EXPECT_EQ(ready.local_id, kClient);
  EXPECT_EQ(ready.remote_id, kServer);
  EXPECT_EQ(ready.private_data, PrivateData<224>{});
}

TEST_F(Captured, Dreq) {
  const auto request = message<DisconnectRequest>(211);
  EXPECT_EQ(request.local_id, kClient);
  EXPECT_EQ(request.remote_id, kServer);
  EXPECT_EQ(request.remote_qpn, 0x15u);
  EXPECT_EQ(request.private_data, PrivateData<220>{});
}

TEST_F(Captured, Drep) {
  const auto reply = message<DisconnectReply>(212);
  EXPECT_EQ(reply.local_id, kServer);
  EXPECT_EQ(reply.remote_id, kClient);
  EXPECT_EQ(reply.private_data, PrivateData<224>{});
}

TEST_F(Captured, WhatElseIsThereIsNone) {
  const auto frames = sim::replay::read_capture(RNICSIM_SOURCE_DIR "/traces/wire/rxe-two-guests.pcap");
  std::vector<std::uint32_t> found;
  for (const auto& frame : frames) {
    const auto parsed = roce::parse_frame(frame.bytes, frame.bytes.size());
    if (parsed.error != roce::ParseError::none) continue;
    const auto payload = std::span(frame.bytes).subspan(parsed.payload_offset, parsed.payload_bytes);
    if (decode(payload)) found.push_back(frame.number);
  }
  EXPECT_EQ(found, (std::vector<std::uint32_t>{184, 185, 186, 211, 212}));
}

// --- Positions of fields.

struct Bits {
  std::size_t byte;
  unsigned first = 0;  // bits count from the most significant
  unsigned count = 8;
};

struct Layout {
  const char* name;
  std::uint16_t attribute;
  std::vector<Bits> reserved;             // behind the MAD header, as in the tables of 12.6 and 12.11
  std::size_t end = kMadBytes - kHeader;  // later bytes are ignored

  friend std::ostream& operator<<(std::ostream& out, const Layout& layout) { return out << layout.name; }
};

std::vector<Bits> bytes(std::size_t first, std::size_t count) {
  std::vector<Bits> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i].byte = first + i;
  return all;
}

std::vector<Bits> joined(std::initializer_list<std::vector<Bits>> parts) {
  std::vector<Bits> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Reserved bits around the packet rate, the service level and the ACK timeout.
std::vector<Bits> in_path(std::size_t at) {
  return {{at + 38, 4, 4}, {at + 39, 0, 2}, {at + 42, 5, 3}, {at + 43, 5, 3}};
}

const Layout kLayouts[] = {
    {"REQ", 0x10, joined({bytes(4, 4), bytes(24, 4), in_path(52), in_path(96)})},
    {"MRA", 0x11, {{8, 2, 6}, {9, 5, 3}}},
    {"REJ", 0x12, {{8, 2, 6}, {9, 7, 1}}},
    {"REP", 0x13, joined({bytes(15, 1), bytes(19, 1), bytes(23, 1), {{27, 4, 4}}})},
    {"RTU", 0x14, {}},
    {"DREQ", 0x15, bytes(11, 1)},
    {"DREP", 0x16, {}},
    {"SIDR_REQ", 0x17, bytes(6, 2)},
    {"SIDR_REP", 0x18, joined({bytes(6, 2), bytes(11, 1)})},
    {"LAP", 0x19, {}, 8},
    {"APR", 0x1a, {}, 10},
};

Mad blank(std::uint16_t attribute) {
  Mad mad{};
  mad[0] = std::byte{1};
  mad[1] = std::byte{7};
  mad[2] = std::byte{2};
  mad[3] = std::byte{3};
  mad[17] = std::byte(attribute);
  return mad;
}

void flip(Mad& mad, std::size_t bit) { mad[bit / 8] ^= std::byte(0x80 >> bit % 8); }

class EachMessage : public ::testing::TestWithParam<Layout> {
 protected:
  static bool is_reserved(std::size_t bit) {
    const std::size_t byte = bit / 8 - kHeader;
    if (byte >= GetParam().end) return true;
    return std::ranges::any_of(GetParam().reserved, [&](const Bits& bits) {
      return bits.byte == byte && bit % 8 >= bits.first && bit % 8 < bits.first + bits.count;
    });
  }
};

TEST_P(EachMessage, HasItsName) {
  const auto envelope = decode(blank(GetParam().attribute));
  ASSERT_TRUE(envelope);
  EXPECT_EQ(name_of(envelope->message), GetParam().name);
}

// A bit of a field keeps its place; a reserved bit is ignored, and sent as zero.
TEST_P(EachMessage, EveryBitIsOfOneField) {
  const Mad zeros = blank(GetParam().attribute);
  for (std::size_t bit = 8 * kHeader; bit < 8 * kMadBytes; ++bit) {
    Mad mad = zeros;
    flip(mad, bit);
    const auto envelope = decode(mad);
    ASSERT_TRUE(envelope);
    EXPECT_EQ(encode(*envelope), is_reserved(bit) ? zeros : mad) << "byte " << bit / 8 - kHeader << ", bit " << bit % 8;
  }
}

TEST_P(EachMessage, TheTransactionGoesWithIt) {
  for (std::size_t bit = 64; bit < 128; ++bit) {
    Mad mad = blank(GetParam().attribute);
    flip(mad, bit);
    EXPECT_EQ(decode(mad)->transaction_id, 1ull << (127 - bit));
    EXPECT_EQ(encode(*decode(mad)), mad);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EachMessage, ::testing::ValuesIn(kLayouts),
                         [](const auto& about) { return std::string(about.param.name); });

// --- Random messages.

Mad random_mad(std::uint16_t attribute) {
  Mad mad = blank(attribute);
  const auto drawn = *rc::gen::container<std::vector<std::uint8_t>>(kMadBytes, rc::gen::arbitrary<std::uint8_t>());
  for (std::size_t i = 4; i < kMadBytes; ++i)
    if (i != 16 && i != 17) mad[i] = std::byte(drawn[i]);
  return mad;
}

RC_GTEST_PROP(MessageProperty, WhatIsSaidIsUnderstood, ()) {
  const auto& layout = *rc::gen::elementOf(std::vector(std::begin(kLayouts), std::end(kLayouts)));
  const auto said = decode(random_mad(layout.attribute));
  RC_ASSERT(said.has_value());
  const auto understood = decode(encode(*said));
  RC_ASSERT(understood.has_value());
  RC_ASSERT(understood->transaction_id == said->transaction_id);
  RC_ASSERT(understood->message == said->message);
}

RC_GTEST_PROP(MessageProperty, AnyBytesAreSafe, (const std::vector<std::uint8_t>& drawn)) {
  std::vector<std::byte> noise;
  std::ranges::transform(drawn, std::back_inserter(noise), [](std::uint8_t value) { return std::byte(value); });
  RC_ASSERT(!decode(noise).has_value() || noise.size() == kMadBytes);
  noise.resize(kMadBytes);
  const Mad head = blank(*rc::gen::inRange<std::uint16_t>(0, 0x30));
  std::copy_n(head.begin(), kHeader, noise.begin());
  if (const auto envelope = decode(noise)) RC_ASSERT(decode(encode(*envelope))->message == envelope->message);
}

// --- Bytes that are no message.

TEST(NoMessage, IsOfAnotherSize) {
  const Mad mad = blank(ConnectRequest::kAttribute);
  std::vector<std::byte> given(mad.begin(), mad.end());
  EXPECT_TRUE(decode(given));
  given.push_back({});
  EXPECT_FALSE(decode(given));
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, kHeader, kMadBytes - 1})
    EXPECT_FALSE(decode(std::span(mad).first(size))) << size;
}

TEST(NoMessage, HasAnotherHead) {
  constexpr const char* kFields[] = {"base version", "class", "class version", "method"};
  for (std::size_t field = 0; field < std::size(kFields); ++field) {
    const Mad right = blank(ReadyToUse::kAttribute);
    for (unsigned value = 0; value < 256; ++value) {
      Mad mad = right;
      mad[field] = std::byte(value);
      EXPECT_EQ(decode(mad).has_value(), mad == right) << kFields[field] << ' ' << value;
    }
  }
}

TEST(NoMessage, HasAnotherAttribute) {
  for (unsigned attribute = 0; attribute < 0x10000; ++attribute) {
    Mad mad = blank(std::uint16_t(attribute));
    mad[16] = std::byte(attribute >> 8);
    EXPECT_EQ(decode(mad).has_value(), attribute >= 0x10 && attribute <= 0x1a) << attribute;
  }
}

}  // namespace
}  // namespace rnicsim::cm::messages_test
