// SPDX-License-Identifier: Apache-2.0
// TCP of the out-of-band network, with programs that ignore the rules that a kernel would enforce.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "sim/attached/network/network.h"
#include "sim/config/topology.h"

namespace rnicsim::sim::attached_network_test {
namespace {

using testing::ElementsAre;

struct Program {
  Network::Number number;
  Descriptor end;
};

class NetworkTest : public testing::Test {
 protected:
  Program socket() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    return {network_.open(0, Descriptor(ends[0])), Descriptor(ends[1])};
  }
  static abi::NetAddress loopback() {
    abi::NetAddress address{.port = 7000};
    address.ip[10] = address.ip[11] = 0xff;
    address.ip[12] = 127, address.ip[15] = 1;
    return address;
  }
  struct Connection {
    Program client;
    Program server;
  };
  Connection connection() {
    if (!listener_) {
      listener_ = socket();
      std::uint16_t port = 0;
      EXPECT_EQ(network_.bind(listener_->number, loopback(), port), 0);
      EXPECT_EQ(network_.listen(listener_->number, 4), 0);
    }
    Connection made{.client = socket(), .server = {}};
    network_.connect(made.client.number, loopback(), [](int error, std::uint16_t) { EXPECT_EQ(error, 0); });
    pass();
    abi::NetAddress peer;
    EXPECT_EQ(network_.accept(listener_->number, made.server.number, made.server.end, peer), 0);
    return made;
  }
  // Writes as programs do, while simulated time passes. Returns the number of bytes written.
  std::size_t write_all(const Program& from, std::size_t bytes) {
    const std::vector<char> some(bytes, 'x');
    std::size_t written = 0;
    for (ssize_t got = 1; written < bytes && got > 0; written += std::size_t(std::max<ssize_t>(got, 0))) {
      got = ::send(from.end.get(), some.data() + written, bytes - written, MSG_DONTWAIT | MSG_NOSIGNAL);
      network_.collect(now());
      pass();
    }
    return written;
  }
  // Writes until the writer would have to wait for the reader.
  std::size_t write_until_full(const Program& from) {
    const std::vector<char> some(65536, 'x');
    std::size_t written = 0;
    for (int in_vain = 0; in_vain < 3;) {
      const ssize_t got = ::send(from.end.get(), some.data(), some.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      written += std::size_t(std::max<ssize_t>(got, 0));
      in_vain = got > 0 ? 0 : in_vain + 1;
      network_.collect(now());
      pass();
    }
    return written;
  }
  struct Heard {
    std::size_t bytes = 0;
    bool end = false;
    bool operator==(const Heard&) const = default;
  };
  Heard hear(const Program& to) {
    Heard heard;
    std::vector<char> buffer(1u << 16);
    ssize_t got;
    while ((got = ::recv(to.end.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
      heard.bytes += std::size_t(got);
      network_.collect(now());
      pass();
    }
    heard.end = got == 0;
    return heard;
  }
  bool forgotten(const Program& program) const { return !network_.belongs_to(program.number, 0); }
  static void pass() { sc_core::sc_start(1, sc_core::SC_MS); }

  Network network_{"network", {}, {default_interface(0, "h0")}};
  std::optional<Program> listener_;
};

// Two threads connect one socket at once: the second call must not take the first call's connection.
TEST_F(NetworkTest, ASocketConnectsOnce) {
  const auto server = socket();
  std::uint16_t port = 0;
  ASSERT_EQ(network_.bind(server.number, loopback(), port), 0);
  ASSERT_EQ(network_.listen(server.number, 4), 0);
  auto client = socket();
  std::vector<int> errors;
  for (int i = 0; i < 2; ++i)
    network_.connect(client.number, loopback(), [&](int error, std::uint16_t) { errors.push_back(error); });
  pass();
  EXPECT_THAT(errors, ElementsAre(0, EISCONN));
  std::array<Descriptor, 2> accepted;
  Network::Number number = 0;
  abi::NetAddress peer;
  EXPECT_EQ(network_.accept(server.number, number, accepted[0], peer), 0);
  EXPECT_EQ(network_.accept(server.number, number, accepted[1], peer), EAGAIN);
  // Both sides close; the last byte has no receiver.
  client.end.reset();
  network_.collect(now());
  pass();
  ASSERT_EQ(::send(accepted[0].get(), "x", 1, MSG_NOSIGNAL), 1);
  accepted[0].reset();
  network_.collect(now());
  pass();
}

// --- Ends of connections. More data is in flight than a program's buffer holds.

constexpr std::size_t kMuch = 1u << 20;

// Each side writes all data, shuts its direction down, and only then reads.
TEST_F(NetworkTest, BothSidesAreReadToTheirEnds) {
  const auto [client, server] = connection();
  for (const Program* program : {&client, &server}) {
    EXPECT_EQ(write_all(*program, kMuch), kMuch);
    ASSERT_EQ(::shutdown(program->end.get(), SHUT_WR), 0);
    network_.collect(now());
    pass();
  }
  for (const Program* program : {&client, &server}) EXPECT_EQ(hear(*program), (Heard{kMuch, true}));
  EXPECT_TRUE(forgotten(client) && forgotten(server));
}

// The end of one direction says nothing about the other direction.
TEST_F(NetworkTest, OneSideReadsLater) {
  const auto [client, server] = connection();
  EXPECT_EQ(write_all(client, kMuch), kMuch);
  for (const Program* program : {&client, &server}) {
    ASSERT_EQ(::shutdown(program->end.get(), SHUT_WR), 0);
    network_.collect(now());
    pass();
  }
  EXPECT_EQ(hear(client), (Heard{0, true}));
  EXPECT_EQ(hear(server), (Heard{kMuch, true}));
  EXPECT_TRUE(forgotten(client) && forgotten(server));
}

// Both sides have unread data, and both close at once.
TEST_F(NetworkTest, BothSidesGoWithoutReading) {
  auto [client, server] = connection();
  for (const Program* program : {&client, &server}) EXPECT_EQ(write_all(*program, kMuch), kMuch);
  client.end.reset();
  server.end.reset();
  for (int i = 0; i < 3; ++i) {
    network_.collect(now());
    pass();
  }
  EXPECT_TRUE(forgotten(client) && forgotten(server));
}

TEST_F(NetworkTest, OneSideGoesWithoutReading) {
  auto [client, server] = connection();
  EXPECT_EQ(write_all(client, kMuch), kMuch);
  EXPECT_EQ(write_all(server, kMuch), kMuch);
  client.end.reset();
  network_.collect(now());
  pass();
  EXPECT_EQ(hear(server), (Heard{kMuch, true}));
  EXPECT_TRUE(network_.take_reset(server.number, 0));
  server.end.reset();
  network_.collect(now());
  pass();
  EXPECT_TRUE(forgotten(client) && forgotten(server));
}

// A write to a closed peer fails one round trip later; a shutdown is no close.
TEST_F(NetworkTest, WhatOneSideWritesToNobodyComesBack) {
  auto [client, server] = connection();
  server.end.reset();
  network_.collect(now());
  pass();
  EXPECT_EQ(write_all(client, 1), 1u);
  EXPECT_EQ(write_all(client, 1), 0u);
  EXPECT_EQ(hear(client), (Heard{0, true}));
  client.end.reset();
  network_.collect(now());
  pass();
  EXPECT_TRUE(forgotten(client) && forgotten(server));
}

// Data sent before arrive first, and the reader reads once.
TEST_F(NetworkTest, OneThatGoesWithoutReadingResets) {
  for (const bool reads : {true, false}) {
    auto [client, server] = connection();
    EXPECT_EQ(write_all(client, 2), 2u);
    EXPECT_EQ(write_all(server, 3), 3u);
    if (reads) {
      EXPECT_EQ(hear(server), (Heard{2, false}));
    }
    server.end.reset();
    network_.collect(now());
    pass();
    EXPECT_FALSE(network_.take_reset(client.number, 1)) << "another host's";
    EXPECT_EQ(hear(client), (Heard{3, true}));
    EXPECT_EQ(network_.take_reset(client.number, 0), !reads);
    EXPECT_FALSE(network_.take_reset(client.number, 0));
  }
}

TEST_F(NetworkTest, WhatOneSideDoesNotWantToReadIsLost) {
  const auto [client, server] = connection();
  ASSERT_EQ(::shutdown(server.end.get(), SHUT_RD), 0);
  EXPECT_EQ(write_all(client, 2), 2u);
  EXPECT_EQ(write_all(client, 2), 2u);
  EXPECT_EQ(write_all(server, 3), 3u);
  EXPECT_EQ(hear(client), (Heard{3, false}));
}

// --- More data than a connection holds.

TEST_F(NetworkTest, WhoIsNotReadIsHalted) {
  constexpr std::size_t kFits = 4 << 20, kMostHeld = 6 << 20;
  const auto [client, server] = connection();
  const std::size_t written = write_until_full(client);
  EXPECT_GE(written, kFits);
  EXPECT_LE(written, kMostHeld);
  EXPECT_EQ(write_until_full(client), 0u);
  // The other direction has its own room, and reads make room.
  EXPECT_EQ(write_all(server, kMuch), kMuch);
  EXPECT_EQ(hear(server), (Heard{written, false}));
  EXPECT_GE(write_until_full(client), kFits);
}

TEST_F(NetworkTest, AHaltedOneGoes) {
  auto [client, server] = connection();
  const std::size_t written = write_until_full(client);
  client.end.reset();
  network_.collect(now());
  pass();
  EXPECT_EQ(hear(server), (Heard{written, true}));
  server.end.reset();
  network_.collect(now());
  pass();
  EXPECT_TRUE(forgotten(client) && forgotten(server));
}

TEST_F(NetworkTest, TheReaderOfAHaltedOneGoes) {
  auto [client, server] = connection();
  EXPECT_GT(write_until_full(client), kMuch);
  server.end.reset();
  client.end.reset();
  for (int i = 0; i < 4; ++i) {
    network_.collect(now());
    pass();
  }
  EXPECT_TRUE(forgotten(client) && forgotten(server));
}

// --- Writes outside of turns.

// The first round does not collect the ends of all streams, nor all sockets.
TEST_F(NetworkTest, AllThatWasWrittenIsCollectedAtOnce) {
  std::vector<Connection> connections;
  for (int i = 0; i < 100; ++i) {
    connections.push_back(connection());
    ASSERT_EQ(::send(connections.back().client.end.get(), "x", 1, 0), 1);
    connections.back().client.end.reset();
  }
  network_.collect(now());
  pass();
  for (const auto& [client, server] : connections) EXPECT_EQ(hear(server), (Heard{1, true}));
}

// Writes again whenever the simulator's read makes room.
struct Eager {
  static constexpr int kMost = 1000;
  static inline int end = -1;
  static inline volatile int refills = 0;
  static void refill(int) {
    static constexpr std::array<char, 4096> kSome{};
    if (refills == kMost) return;
    refills = refills + 1;
    while (::send(end, kSome.data(), kSome.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  }
};

TEST_F(NetworkTest, WhoNeverStopsWritingIsLeft) {
  const auto [client, server] = connection();
  Eager::end = client.end.get();
  ::signal(SIGIO, Eager::refill);
  ::fcntl(Eager::end, F_SETOWN, ::getpid());
  ::fcntl(Eager::end, F_SETFL, ::fcntl(Eager::end, F_GETFL) | O_ASYNC);
  Eager::refill(SIGIO);
  network_.collect(now());
  EXPECT_GT(Eager::refills, 1);
  EXPECT_LT(Eager::refills, 50);
  ::signal(SIGIO, SIG_IGN);
}

}  // namespace
}  // namespace rnicsim::sim::attached_network_test
