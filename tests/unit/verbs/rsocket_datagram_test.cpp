// SPDX-License-Identifier: Apache-2.0
// Datagram rsockets find each other over UDP, and then communicate from queue pair to queue pair.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/rsocket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_rdma.h"

namespace rnicsim::rsockets::rsocket_datagram_test {
namespace {

sockaddr* any(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

class RsocketDatagram : public testing::Test {
 protected:
  void SetUp() override {
    objects_ = fake_rdma::objects();
    server_ = rsocket(AF_INET, SOCK_DGRAM, 0);
    client_ = rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
    ASSERT_GE(server_, 0);
    ASSERT_GE(client_, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(rbind(server_, any(address_), sizeof address_), 0);
    socklen_t length = sizeof address_;
    ASSERT_EQ(rgetsockname(server_, any(address_), &length), 0);
  }
  void TearDown() override {
    EXPECT_EQ(rclose(client_), 0);
    EXPECT_EQ(rclose(server_), 0);
    EXPECT_EQ(fake_rdma::objects(), objects_);
  }
  std::string receive(int fd, int flags = 0, sockaddr_in* source = nullptr) {
    char bytes[3000];
    socklen_t length = sizeof *source;
    const ssize_t count = rrecvfrom(fd, bytes, sizeof bytes, flags, reinterpret_cast<sockaddr*>(source), &length);
    return count < 0 ? "none" : std::string(bytes, std::size_t(count));
  }

  int objects_ = 0;
  int server_ = -1;
  int client_ = -1;
  sockaddr_in address_{};
};

TEST_F(RsocketDatagram, TheFirstByUdpTheNextDirect) {
  ASSERT_EQ(rconnect(client_, any(address_), sizeof address_), 0);
  EXPECT_EQ(rsend(client_, "first", 5, 0), 5);
  sockaddr_in source{};
  EXPECT_EQ(receive(server_, 0, &source), "first");
  sockaddr_in own{};
  socklen_t length = sizeof own;
  EXPECT_EQ(rgetsockname(client_, any(own), &length), 0);
  EXPECT_EQ(source.sin_port, own.sin_port);
  EXPECT_EQ(source.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  // The server knows the client's queue pair now.
  const std::uint64_t sends = fake_rdma::sends();
  EXPECT_EQ(rsendto(server_, "answer", 6, 0, any(source), sizeof source), 6);
  EXPECT_EQ(fake_rdma::sends(), sends + 1);
  EXPECT_EQ(receive(client_, 0, &source), "answer");
  EXPECT_EQ(source.sin_port, address_.sin_port);
  // The client learns the server's queue pair from its answer, which may take a moment.
  while (fake_rdma::sends() == sends + 1) {
    EXPECT_EQ(rsend(client_, "next", 4, 0), 4);
    EXPECT_EQ(receive(server_, 0, &source), "next");
    EXPECT_EQ(source.sin_port, own.sin_port);
  }
  // The receiver polls no more than has arrived.
  EXPECT_EQ(rsend(client_, "last", 4, 0), 4);
  const std::uint64_t polls = fake_rdma::vain_polls();
  EXPECT_EQ(receive(server_), "last");
  EXPECT_EQ(fake_rdma::vain_polls(), polls);
}

// As rdma_cm binds it: datagrams over another path and with another IP version arrive, with the sender's own address.
TEST_F(RsocketDatagram, TheLoopbackAddressIsBoundAsAWildcard) {
  const int six = rsocket(AF_INET6, SOCK_DGRAM, 0);
  sockaddr_in6 own{};
  own.sin6_family = AF_INET6;
  own.sin6_addr = in6addr_loopback;
  ASSERT_EQ(rbind(six, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
  socklen_t length = sizeof own;
  own = {};
  EXPECT_EQ(rgetsockname(six, reinterpret_cast<sockaddr*>(&own), &length), 0);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&own.sin6_addr));
  address_.sin_port = own.sin6_port;
  EXPECT_EQ(rsendto(client_, "four", 4, 0, any(address_), sizeof address_), 4);
  sockaddr_in source{};
  EXPECT_EQ(receive(six, 0, &source), "four");
  EXPECT_EQ(source.sin_family, AF_INET);
  EXPECT_EQ(source.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(rsendto(six, "back", 4, 0, any(source), sizeof source), 4);
  EXPECT_EQ(receive(client_), "back");
  EXPECT_EQ(rclose(six), 0);
}

TEST_F(RsocketDatagram, APollerSleepsUntilADatagramComes) {
  std::thread polls([&] {
    for (int i = 0; i < 3; ++i) {
      pollfd asked{server_, POLLIN, 0};
      EXPECT_EQ(rpoll(&asked, 1, -1), 1);
      EXPECT_EQ(receive(server_), std::to_string(i));
    }
  });
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(rsendto(client_, std::to_string(i).data(), 1, 0, any(address_), sizeof address_), 1);
  }
  polls.join();
}

TEST_F(RsocketDatagram, WithoutWaiting) {
  ASSERT_EQ(rfcntl(server_, F_SETFL, O_NONBLOCK), 0);
  char bytes[4];
  EXPECT_EQ(rrecv(server_, bytes, 4, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  pollfd asked{server_, POLLIN | POLLOUT, 0};
  EXPECT_EQ(rpoll(&asked, 1, 0), 1);
  EXPECT_EQ(asked.revents, POLLOUT);
}

TEST_F(RsocketDatagram, LengthsAndFlags) {
  ASSERT_EQ(rconnect(client_, any(address_), sizeof address_), 0);
  std::vector<char> bytes(2048 - 8 + 1);
  EXPECT_EQ(rsend(client_, bytes.data(), bytes.size(), 0), -1);
  EXPECT_EQ(errno, EMSGSIZE);
  EXPECT_EQ(rsend(client_, bytes.data(), bytes.size() - 1, 0), ssize_t(bytes.size() - 1));
  EXPECT_EQ(receive(server_).size(), bytes.size() - 1);
  iovec pieces[] = {{bytes.data(), 3}, {bytes.data(), 4}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  EXPECT_EQ(rsendmsg(client_, &message, 0), 7);
  EXPECT_EQ(receive(server_, MSG_PEEK).size(), 7u);
  EXPECT_EQ(rrecv(server_, bytes.data(), 2, MSG_TRUNC), 7);
}

TEST_F(RsocketDatagram, NowhereToSend) {
  EXPECT_EQ(rsend(client_, "x", 1, 0), -1);
  EXPECT_EQ(errno, EDESTADDRREQ);
  EXPECT_EQ(rlisten(client_, 1), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(raccept(client_, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  int value = 1;
  EXPECT_EQ(rsetsockopt(client_, SOL_RDMA, RDMA_SQSIZE, &value, sizeof value), -1);  // the queue pair has been used
  EXPECT_EQ(errno, EINVAL);
}

// More datagrams than slots, without loss: the receiver reads meanwhile.
TEST_F(RsocketDatagram, ManyInOrder) {
  ASSERT_EQ(rconnect(client_, any(address_), sizeof address_), 0);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_EQ(rsend(client_, text.data(), text.size(), 0), ssize_t(text.size()));
    ASSERT_EQ(receive(server_), text);
  }
}

}  // namespace
}  // namespace rnicsim::rsockets::rsocket_datagram_test
