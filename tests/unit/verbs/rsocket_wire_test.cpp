// SPDX-License-Identifier: Apache-2.0
// rsockets send the same bytes as rdma-core's, and refuse bytes that are no valid message.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "verbs/rsockets/settings.h"
#include "verbs/rsockets/wire.h"

namespace rnicsim::rsockets::rsocket_wire_test {
namespace {

template <std::size_t kSize>
std::vector<int> bytes_of(const std::array<std::byte, kSize>& bytes, std::size_t length = kSize) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < length; ++i) numbers.push_back(int(bytes[i]));
  return numbers;
}

TEST(RsocketWire, ImmediateData) {
  EXPECT_EQ(encode(Message{Op::data, 0x12345}), 0x00012345u);
  EXPECT_EQ(encode(Message{Op::grant, 384}), 0x80000180u);
  EXPECT_EQ(encode(Message{Op::iomap, 3}), 0xc0000003u);
  EXPECT_EQ(encode(control_message(Control::disconnect)), 0xe0000000u);
  EXPECT_EQ(encode(control_message(Control::keepalive)), 0xe0000001u);
  EXPECT_EQ(encode(control_message(Control::shutdown)), 0xe0000002u);
  for (unsigned op = 0; op < 8; ++op) {
    const Message message{Op(op), 0x1abcdef0};
    EXPECT_EQ(decode_message(encode(message)), message);
  }
  EXPECT_EQ(decode_message(encode(Message{Op::data, ~0u})), (Message{Op::data, kMaxMessageValue}));
}

TEST(RsocketWire, ConnectionData) {
  ConnectionData data;
  data.big_endian = false;
  data.credits = 384;
  data.iomap_entries = 300;
  data.targets = {0x0102030405060708, 0x11121314, 2};
  data.buffer = {0x2122232425262728, 0x31323334, 65536};
  const auto bytes = encode(data);
  EXPECT_EQ(bytes_of(bytes),
            (std::vector<int>{1,    2,    0x01, 0x80, 0,    0,    0,    0x81, 1, 2, 3,    4,    5,    6,
                              7,    8,    0x11, 0x12, 0x13, 0x14, 0,    0,    0, 2, 0x21, 0x22, 0x23, 0x24,
                              0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0, 1, 0,    0}));
  auto decoded = decode_connection_data(bytes.data(), bytes.size());
  ASSERT_TRUE(decoded);
  data.iomap_entries = 256;  // the nearest lower number that the format can express
  EXPECT_EQ(*decoded, data);
  EXPECT_FALSE(decode_connection_data(bytes.data(), bytes.size() - 1));
  EXPECT_FALSE(decode_connection_data(nullptr, 0));
}

// A peer that announces no mappings has none, whatever the byte of their number contains.
TEST(RsocketWire, ConnectionDataWithoutMappings) {
  ConnectionData data;
  data.maps = false;
  data.iomap_entries = 8;
  const auto bytes = encode(data);
  EXPECT_EQ(decode_connection_data(bytes.data(), bytes.size())->iomap_entries, 0);
}

TEST(RsocketWire, CountsOfMappings) {
  for (std::uint32_t wanted = 0; wanted <= 0xffff; ++wanted) {
    const std::uint16_t rounded = round_iomap_entries(std::uint16_t(wanted));
    EXPECT_LE(rounded, wanted);
    EXPECT_EQ(round_iomap_entries(rounded), rounded);
    EXPECT_TRUE(wanted > 128 || rounded == wanted) << wanted;
  }
  EXPECT_EQ(scaled_iomap_entries(512), 0x82);
  EXPECT_EQ(unscaled_iomap_entries(0xff), 127 * 256);
}

TEST(RsocketWire, EntriesInThePeersByteOrder) {
  const Mapping mapping{0x0102030405060708, {0x1112131415161718, 0x21222324, 0x31323334}};
  EXPECT_EQ(decode(encode(mapping, false)), mapping);
  const WireMapping swapped = encode(mapping, true);
  EXPECT_EQ(swapped.offset, 0x0807060504030201u);
  EXPECT_EQ(swapped.extent.address, 0x1817161514131211u);
  EXPECT_EQ(swapped.extent.key, 0x24232221u);
  EXPECT_EQ(swapped.extent.length, 0x34333231u);
}

SocketAddress v4(const char* text, std::uint16_t port) {
  SocketAddress address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.v4.sin_addr);
  return address;
}
SocketAddress v6(const char* text, std::uint16_t port) {
  SocketAddress address{};
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_port = htons(port);
  address.v6.sin6_flowinfo = htonl(5);
  inet_pton(AF_INET6, text, &address.v6.sin6_addr);
  return address;
}

TEST(RsocketWire, DatagramHeaders) {
  const DatagramHeader header = datagram_header(v4("10.0.0.1", 0x1c06));
  EXPECT_EQ(bytes_of(header.bytes, header.length), (std::vector<int>{4, 8, 0x1c, 0x06, 10, 0, 0, 1}));
  SocketAddress source;
  EXPECT_EQ(parse_datagram_header(header.bytes.data(), header.length, source), kDatagramHeaderV4);
  EXPECT_EQ(source.v4.sin_addr.s_addr, v4("10.0.0.1", 0).v4.sin_addr.s_addr);
  EXPECT_EQ(source.v4.sin_port, htons(0x1c06));

  const SocketAddress six = v6("fd00::2", 7174);
  const DatagramHeader longer = datagram_header(six);
  EXPECT_EQ(longer.length, kDatagramHeaderV6);
  EXPECT_EQ(parse_datagram_header(longer.bytes.data(), longer.length, source), kDatagramHeaderV6);
  EXPECT_EQ(std::memcmp(&source.v6, &six.v6, sizeof six.v6), 0);
  EXPECT_FALSE(parse_datagram_header(longer.bytes.data(), longer.length - 1, source));
  EXPECT_FALSE(parse_datagram_header(header.bytes.data(), header.length - 1, source));
  auto other = header.bytes;
  other[0] = std::byte{5};
  EXPECT_FALSE(parse_datagram_header(other.data(), other.size(), source));
}

TEST(RsocketWire, LookupHeaders) {
  LookupHeader header;
  header.op = Op::control;
  header.qp_number = 0xff123456;  // only 24 bits are sent
  header.address[0] = std::byte{10};
  header.address[3] = std::byte{2};
  const auto bytes = encode(header);
  EXPECT_EQ(bytes_of(bytes, header.length()),
            (std::vector<int>{0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0x12, 0x34, 0x56, 10, 0, 0, 2}));
  header.qp_number = 0x123456;
  EXPECT_EQ(parse_lookup_header(bytes.data(), header.length()), header);
  EXPECT_FALSE(parse_lookup_header(bytes.data(), header.length() - 1));
  for (const std::size_t broken : {0u, 4u, 5u, 6u}) {
    auto other = bytes;
    other[broken] = std::byte{9};
    EXPECT_FALSE(parse_lookup_header(other.data(), other.size())) << broken;
  }
  header.v6 = true;
  header.address[15] = std::byte{7};
  const auto longer = encode(header);
  EXPECT_EQ(parse_lookup_header(longer.data(), longer.size()), header);
  EXPECT_FALSE(parse_lookup_header(longer.data(), longer.size() - 1));
}

TEST(RsocketSettings, FilesThatHoldANumber) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "rsocket_settings";
  std::filesystem::create_directories(folder);
  const auto put = [&](const char* name, const char* text) { std::ofstream(folder / name) << text; };
  put("polling_time", "25\n");
  put("mem_default", "1000000\n");
  put("wmem_default", "100\n");
  put("sqsize_default", "70000\n");  // does not fit
  put("rqsize_default", "many\n");
  put("iomap_size", "300\n");
  const Settings set = Settings::read(folder);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(set.polling_time.count(), 25);
  EXPECT_EQ(set.receive_bytes, 1000000u);
  EXPECT_EQ(set.send_bytes, 2 * kLowWater);
  EXPECT_EQ(set.send_queue, 384);
  EXPECT_EQ(set.receive_queue, 384);
  EXPECT_EQ(set.inline_bytes, 64);
  EXPECT_EQ(set.iomap_entries, 256);
}

}  // namespace
}  // namespace rnicsim::rsockets::rsocket_wire_test
