// SPDX-License-Identifier: Apache-2.0
// The attach server accepts every process that says hello, whatever other connections do.
#include "sim/attached/attach_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace rnicsim::sim {
namespace {

class AttachServerTest : public testing::Test {
 protected:
  Descriptor connected() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    server_.name().copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + server_.name().size());
    Descriptor visitor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(visitor.get(), reinterpret_cast<const sockaddr*>(&address), bytes), 0);
    return visitor;
  }
  static void say_hello(const Descriptor& visitor) {
    abi::Hello hello;
    hello.pid = std::uint32_t(::getpid());
    ASSERT_EQ(::send(visitor.get(), &hello, sizeof hello, 0), ssize_t(sizeof hello));
  }
  static bool was_left(const Descriptor& visitor) {
    pollfd left{visitor.get(), POLLIN, 0};
    return ::poll(&left, 1, 0) == 1;
  }
  bool look() {
    return server_.take_stranger([](pid_t) { return false; }).has_value();
  }

  AttachServer server_{AttachServer::random_name("rnicsim-test-")};
};

TEST_F(AttachServerTest, AHelloMayComeLater) {
  const Descriptor visitor = connected();
  EXPECT_FALSE(look());
  say_hello(visitor);
  EXPECT_TRUE(look());
}

// Signals that interrupt every system call.
TEST_F(AttachServerTest, ASignalIsNoHello) {
  const Descriptor visitor = connected();
  ::signal(SIGALRM, [](int) {});
  const itimerval often{{0, 20}, {0, 20}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 5000 && !was_left(visitor); ++i) look();
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ASSERT_FALSE(was_left(visitor));
  say_hello(visitor);
  EXPECT_TRUE(look());
}

// A pass over the visitors ends. Of too many silent connections the first are closed; connections that this pass did
// not reach do not count as silent.
TEST_F(AttachServerTest, APassHasAnEnd) {
  constexpr int kVisitors = 100, kASilentFew = 32;
  std::vector<Descriptor> visitors;
  for (int i = 0; i < kVisitors; ++i) visitors.push_back(connected());
  EXPECT_FALSE(look());
  EXPECT_LT(std::ranges::count_if(visitors, was_left), kVisitors - kASilentFew);
  EXPECT_TRUE(server_.has_visitors());
  say_hello(visitors.back());
  EXPECT_TRUE(look());
}

}  // namespace
}  // namespace rnicsim::sim
