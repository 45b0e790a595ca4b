// The out-of-band network against programs that do not keep to what a kernel would let them do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "sim/attached/network.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {
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
  static void pass() { sc_core::sc_start(1, sc_core::SC_MS); }

  Network network_{"network", {}, {default_host(0, "h0")}};
};

// Two threads at once: the second must not take the first one's connection away.
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
  // Both sides go, and what one wrote last meets nobody.
  client.end.reset();
  network_.collect(now());
  pass();
  ASSERT_EQ(::send(accepted[0].get(), "x", 1, MSG_NOSIGNAL), 1);
  accepted[0].reset();
  network_.collect(now());
  pass();
}

}  // namespace
}  // namespace rnicsim::sim
