// SPDX-License-Identifier: Apache-2.0
// UDP of the out-of-band network, with programs that ignore the rules that a kernel would enforce.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/abi/net_address.h"
#include "sim/attached/network/datagrams.h"
#include "sim/config/topology.h"

namespace rnicsim::sim::attached_datagrams_test {
namespace {

using abi::NetAddress;
using testing::ElementsAre;
using Version = Datagrams::Version;

struct Program {
  Datagrams::Number number;
  Descriptor end;
};

NetAddress v4(std::array<std::uint8_t, 4> ip, std::uint16_t port) {
  NetAddress address{.port = port};
  std::ranges::copy(abi::kMappedPrefix, address.ip);
  std::ranges::copy(ip, address.ip + 12);
  return address;
}
NetAddress v6(std::array<std::uint8_t, 16> ip, std::uint16_t port) {
  NetAddress address{.port = port};
  std::ranges::copy(ip, address.ip);
  return address;
}
constexpr std::array<std::uint8_t, 4> kAny{}, kLoopback{127, 0, 0, 1}, kH0{10, 0, 0, 1}, kH1{10, 0, 1, 1};

class DatagramsTest : public testing::Test {
 protected:
  Program socket(std::uint32_t host = 0, Version version = Version::v4) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
    return {datagrams_.open(host, Descriptor(ends[0]), version), Descriptor(ends[1])};
  }
  Program bound(const NetAddress& address, std::uint32_t host = 0, Version version = Version::v4) {
    Program program = socket(host, version);
    EXPECT_EQ(datagrams_.bind(program.number, address), 0);
    return program;
  }
  int bind(const NetAddress& address, std::uint32_t host = 0, Version version = Version::v4) {
    const Program program = socket(host, version);
    return datagrams_.bind(program.number, address);
  }
  // Sends as the program's side does, without waiting for room.
  bool send(const Program& from, NetAddress to, const std::string& payload) {
    EXPECT_EQ(datagrams_.prepare_send(from.number, to), 0);
    return write(from, {.address = to, .time = std::uint64_t(now().ps)}, payload);
  }
  bool write(const Program& from, const abi::DatagramHeader& header, const std::string& payload) {
    std::string bytes(sizeof header, 0);
    std::memcpy(bytes.data(), &header, sizeof header);
    bytes += payload;
    const ssize_t sent = ::send(from.end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    datagrams_.collect(now());
    return sent == ssize_t(bytes.size());
  }
  struct Received {
    abi::DatagramHeader header;
    std::string payload;
  };
  std::optional<Received> receive(const Program& to) {
    std::string bytes(1u << 17, 0);
    const ssize_t got = ::recv(to.end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < ssize_t(sizeof(abi::DatagramHeader))) return std::nullopt;
    Received received{.payload = bytes.substr(sizeof received.header, std::size_t(got) - sizeof received.header)};
    std::memcpy(&received.header, bytes.data(), sizeof received.header);
    return received;
  }
  std::vector<std::string> receive_all(const Program& to) {
    std::vector<std::string> all;
    while (const auto received = receive(to)) all.push_back(received->payload);
    return all;
  }
  NetAddress local(const Program& program) {
    NetAddress names[2];
    datagrams_.names(program.number, names);
    return names[0];
  }
  bool forgotten(const Program& program) const { return !datagrams_.belongs_to(program.number, 0); }
  static void pass(double microseconds = 1000) { sc_core::sc_start(microseconds, sc_core::SC_US); }

  const NetworkParams params_;
  const HostAddresses addresses_{{default_interface(0, "h0"), default_interface(1, "h1")}};
  Datagrams datagrams_{params_, addresses_};
};

// --- Addresses.

TEST_F(DatagramsTest, APortIsTakenByAddressAndVersion) {
  const auto specific = bound(v4(kH0, 7000));
  EXPECT_EQ(bind(v4(kH0, 7000)), EADDRINUSE);
  EXPECT_EQ(bind(v4(kAny, 7000)), EADDRINUSE);
  EXPECT_EQ(bind(v6({}, 7000), 0, Version::v6), EADDRINUSE);  // covers IPv4, too
  EXPECT_EQ(bind(v4(kLoopback, 7000)), 0);
  EXPECT_EQ(bind(v4(kH1, 7000), 1), 0);
  EXPECT_EQ(bind(v4(kH1, 7001), 0), EADDRNOTAVAIL);
  EXPECT_EQ(bind(v6({}, 7000)), EINVAL);
  const auto six = socket(0, Version::v6);
  EXPECT_EQ(datagrams_.set_option(six.number, abi::DatagramOption::v6_only, 1), 0);
  EXPECT_EQ(datagrams_.bind(six.number, v6({}, 7000)), 0);
  EXPECT_EQ(datagrams_.bind(six.number, v6({}, 7001)), EINVAL);
}

TEST_F(DatagramsTest, ALoopbackAddressLeadsNowhereElse) {
  const auto from = bound(v4(kLoopback, 0));
  NetAddress to = v4(kH1, 7000);
  EXPECT_EQ(datagrams_.prepare_send(from.number, to), EINVAL);
  EXPECT_EQ(datagrams_.connect(from.number, v4(kH1, 7000)), EINVAL);
  EXPECT_EQ(datagrams_.connect(from.number, v6({}, 7000)), ENETUNREACH);
}

TEST_F(DatagramsTest, APeerGivesAnAddressAndItsEndTakesIt) {
  const auto chosen = socket();
  EXPECT_EQ(datagrams_.connect(chosen.number, v4(kH1, 7000)), 0);
  EXPECT_TRUE(same_ip(local(chosen), v4(kH0, 0)));
  EXPECT_NE(local(chosen).port, 0);
  EXPECT_EQ(datagrams_.disconnect(chosen.number), 0);
  EXPECT_TRUE(is_wildcard(local(chosen)));
  EXPECT_EQ(local(chosen).port, 0);
  const auto asked = bound(v4(kH0, 7000));
  EXPECT_EQ(datagrams_.connect(asked.number, v4(kH1, 7000)), 0);
  EXPECT_EQ(datagrams_.disconnect(asked.number), 0);
  EXPECT_TRUE(same_ip(local(asked), v4(kH0, 0)));
  EXPECT_EQ(local(asked).port, 7000);
}

// --- Routes of datagrams, and their times.

TEST_F(DatagramsTest, WhoAsksMostExactlyGetsIt) {
  const auto wide = bound(v4(kAny, 7000));
  const auto from = bound(v4(kLoopback, 8000));
  const auto stranger = bound(v4(kLoopback, 8001));
  EXPECT_EQ(datagrams_.connect(wide.number, v4(kLoopback, 8000)), 0);
  const auto six = socket(0, Version::v6);
  ASSERT_EQ(datagrams_.bind(six.number, v6({}, 7001)), 0);
  EXPECT_TRUE(send(from, v4(kLoopback, 7000), "a"));
  EXPECT_TRUE(send(stranger, v4(kLoopback, 7000), "b"));
  EXPECT_TRUE(send(stranger, v4(kLoopback, 7001), "c"));
  pass();
  EXPECT_THAT(receive_all(wide), ElementsAre("a"));
  const auto mapped = receive(six);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->payload, "c");
  EXPECT_TRUE(same_ip(mapped->header.address, v4(kLoopback, 0)));
  EXPECT_EQ(mapped->header.address.port, 8001);
}

TEST_F(DatagramsTest, ItTakesTheLineAndTheLatency) {
  const auto to = bound(v4(kH1, 7000), 1);
  const auto from = socket();
  EXPECT_TRUE(send(from, v4(kH1, 7000), std::string(9972, 'x')));  // 10,000 bytes: 8 us
  EXPECT_TRUE(send(from, v4(kH1, 7000), "y"));
  pass(27.9);
  EXPECT_FALSE(receive(to));
  pass(0.11);  // and 29 bytes: 23.2 ns
  EXPECT_EQ(receive_all(to).size(), 1u);
  pass(0.03);
  EXPECT_THAT(receive_all(to), ElementsAre("y"));
}

// A datagram that waits for the line keeps the sender address from the time of the send.
TEST_F(DatagramsTest, WhatWaitsForTheLineKeepsItsSender) {
  const auto to = bound(v4(kAny, 7000), 1);
  auto from = socket();
  ASSERT_EQ(datagrams_.connect(from.number, v4(kH1, 7000)), 0);
  const NetAddress sender = local(from);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(send(from, {}, std::string(9000, 'x')));
  EXPECT_EQ(datagrams_.disconnect(from.number), 0);
  EXPECT_EQ(local(from).port, 0);
  pass();
  for (int i = 0; i < 3; ++i) {
    const auto received = receive(to);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->header.address.port, sender.port);
  }
}

TEST_F(DatagramsTest, WhoIsGoneHasSentAllAndFreesItsPort) {
  const auto to = bound(v4(kH0, 7000));
  auto from = bound(v4(kH0, 8000));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(send(from, v4(kH0, 7000), std::to_string(i)));
  from.end.reset();
  datagrams_.collect(now());
  EXPECT_TRUE(forgotten(from));
  EXPECT_EQ(bind(v4(kH0, 8000)), 0);
  pass();
  EXPECT_THAT(receive_all(to), ElementsAre("0", "1", "2", "3", "4"));
}

// The buffers are bounded: the sender's fills up; datagrams beyond the receiver's are lost.
TEST_F(DatagramsTest, BuffersAreBounded) {
  const auto to = bound(v4(kH0, 7000));
  const auto from = socket();
  int sent = 0;
  while (send(from, v4(kH0, 7000), std::string(60'000, 'x')) && sent < 100) ++sent;
  EXPECT_GT(sent, 2);
  EXPECT_LT(sent, 20);
  for (int i = 0; i < 100; ++i) {
    pass();
    sent += send(from, v4(kH0, 7000), std::string(60'000, 'x')) ? 1 : 0;
  }
  pass();
  const std::size_t kept = receive_all(to).size();
  EXPECT_GT(kept, 2u);
  EXPECT_LT(kept, 20u);
  // Even the smallest receive buffer takes the largest datagram.
  EXPECT_EQ(datagrams_.set_option(to.number, abi::DatagramOption::receive_buffer, 1), 0);
  EXPECT_TRUE(send(from, v4(kH0, 7000), std::string(abi::kMostDatagramBytes, 'x')));
  pass();
  EXPECT_EQ(receive_all(to).size(), 1u);
}

TEST_F(DatagramsTest, AClosedPortIsToldOfToItsPeerOnly) {
  const auto connected = socket();
  ASSERT_EQ(datagrams_.connect(connected.number, v4(kH1, 7000)), 0);
  const auto other = socket();
  EXPECT_TRUE(send(connected, {}, "x"));
  EXPECT_TRUE(send(other, v4(kH1, 7000), "x"));
  pass(39);
  EXPECT_FALSE(receive(connected));
  pass(2);
  const auto told = receive(connected);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->header.error, std::uint32_t(ECONNREFUSED));
  EXPECT_FALSE(receive(other));
  // No host has this address.
  EXPECT_TRUE(send(other, v4({10, 0, 7, 7}, 7000), "x"));
  pass();
}

// --- Messages that the program's side never writes.

TEST_F(DatagramsTest, HostileMessagesGoNowhere) {
  const auto to = bound(v4(kH0, 7000));
  const auto from = bound(v4(kH0, 8000));
  const auto unnamed = socket();
  const auto write_bytes = [&](const std::string& bytes) {
    EXPECT_EQ(::send(from.end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), ssize_t(bytes.size()));
    datagrams_.collect(now());
    pass();
  };
  write_bytes("x");
  write_bytes(std::string(sizeof(abi::DatagramHeader) - 1, '\xff'));
  write_bytes(std::string(sizeof(abi::DatagramHeader), '\xff'));
  EXPECT_TRUE(write(from, {.address = v4(kH0, 0)}, "no port"));
  EXPECT_TRUE(write(from, {.address = v4(kH0, 7000)}, std::string(abi::kMostDatagramBytes + 1, 'x')));
  EXPECT_TRUE(write(unnamed, {.address = v4(kH0, 7000)}, "no port of its own"));
  EXPECT_TRUE(write(from, {.address = v6({0xfd, 1, 2}, 7000)}, "another version"));
  pass();
  EXPECT_FALSE(receive(to));
  // A time in the far future counts as the time of the turn.
  EXPECT_TRUE(write(from, {.address = v4(kH0, 7000), .time = std::numeric_limits<std::uint64_t>::max()}, "now"));
  pass();
  EXPECT_THAT(receive_all(to), ElementsAre("now"));
  write_bytes("");  // an empty message, which looks like the end
  EXPECT_FALSE(forgotten(from));
}

// The program's side is shut down, but the process lives on.
TEST_F(DatagramsTest, WhoShutsDownKeepsNobodyBusy) {
  const auto from = bound(v4(kH0, 8000));
  EXPECT_TRUE(send(from, v4(kH0, 7000), "last"));
  ASSERT_EQ(::shutdown(from.end.get(), SHUT_WR), 0);
  pass();
  for (int i = 0; i < 2; ++i) datagrams_.collect(now());
  pollfd look{datagrams_.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&look, 1, 0), 0);
  EXPECT_FALSE(forgotten(from));
}

// Writes again whenever the simulator's read makes room.
struct Eager {
  static constexpr int kMost = 2000;
  static inline int end = -1;
  static inline volatile int refills = 0;
  static void refill(int) {
    static constexpr std::array<char, sizeof(abi::DatagramHeader)> kSome{};
    if (refills == kMost) return;
    refills = refills + 1;
    while (::send(end, kSome.data(), kSome.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  }
};

TEST_F(DatagramsTest, WhoNeverStopsWritingIsLeft) {
  const auto from = bound(v4(kH0, 8000));
  Eager::end = from.end.get();
  ::signal(SIGIO, Eager::refill);
  ::fcntl(Eager::end, F_SETOWN, ::getpid());
  ::fcntl(Eager::end, F_SETFL, ::fcntl(Eager::end, F_GETFL) | O_ASYNC);
  Eager::refill(SIGIO);
  datagrams_.collect(now());
  EXPECT_EQ(datagrams_.connect(from.number, v4(kH0, 7000)), 0);
  EXPECT_LT(Eager::refills, Eager::kMost);
  ::signal(SIGIO, SIG_IGN);
}

}  // namespace
}  // namespace rnicsim::sim::attached_datagrams_test
